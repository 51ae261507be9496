package natsbus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/trimtab/trimtab"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	// file is the authority's own certificate as PEM.
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	a.file = a.sign(a.cert, &key.PublicKey)
	return a
}

// sign writes a certificate as PEM and returns the file.
func (a *authority) sign(cert *x509.Certificate, key *ecdsa.PublicKey) string {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return write(a.t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// issue returns the files of a certificate and its key.
func (a *authority) issue() (cert, key string) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	cert = a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &k.PublicKey)
	return cert, write(a.t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// config is the server's side of TLS.
func (a *authority) config() *tls.Config {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue())
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.parsed())
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, MinVersion: tls.VersionTLS12}
}

func (a *authority) parsed() *x509.Certificate {
	a.t.Helper()
	raw, err := os.ReadFile(a.file)
	if err != nil {
		a.t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve starts a nats-server that listens on a free port of loopback.
func serve(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.StoreDir = "127.0.0.1", server.RANDOM_PORT, t.TempDir()
	o.NoSigs, o.NoLog, o.JetStream = true, true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// seed returns the file of a new nkey's seed, and its public key.
func seed(t *testing.T) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return write(t, "seed", s), public
}

func TestAServerWithSecretsIsReachedWithTheRightOnesOnly(t *testing.T) {
	good, bad := newAuthority(t), newAuthority(t)
	cert, key := good.issue()
	foreignCert, foreignKey := bad.issue()
	mutual := good.config()
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	nkey, public := seed(t)
	otherKey, _ := seed(t)
	for name, c := range map[string]struct {
		server server.Options
		right  Config
		wrong  map[string]Config // by what the error must say
	}{
		"token": {server.Options{Authorization: "s3cret"}, Config{Login: Login{Token: "s3cret"}},
			map[string]Config{"not accepted": {Login: Login{Token: "s4cret"}}, "Authorization Violation": {}}},
		"user and password": {server.Options{Username: "me", Password: "s3cret"}, Config{URL: "nats://me:s3cret@"},
			map[string]Config{"not accepted": {URL: "nats://me:s4cret@"}}},
		"nkey": {server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}, Config{Login: Login{NKey: nkey}},
			map[string]Config{"not accepted": {Login: Login{NKey: otherKey}}, "read nkey": {Login: Login{NKey: nkey + "x"}}}},
		"TLS": {server.Options{TLSConfig: good.config()}, Config{CA: good.file},
			map[string]Config{"unknown authority": {CA: bad.file}, "cert.pem.none": {CA: good.file + ".none"}}},
		"TLS with client certificates": {server.Options{TLSConfig: mutual}, Config{CA: good.file, Cert: cert, Key: key},
			map[string]Config{"tls": {CA: good.file, Cert: foreignCert, Key: foreignKey}}},
		"TLS and token": {server.Options{TLSConfig: good.config(), Authorization: "s3cret"}, Config{CA: good.file, Login: Login{Token: "s3cret"}},
			map[string]Config{"not accepted": {CA: good.file, Login: Login{Token: "s4cret"}}, "unknown authority": {CA: bad.file, Login: Login{Token: "s3cret"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.server)
			at := func(c Config) Config {
				user := "nats://"
				if c.URL != "" {
					user = c.URL
				}
				c.URL, c.Source = user+s.Addr().String(), "test"
				return c
			}
			b := open(t, at(c.right))
			sendUntilStored(t, b, commandBy("one with the right secret"))
			for says, wrong := range c.wrong {
				b, err := Open(t.Context(), at(wrong))
				if err == nil {
					b.Close()
					t.Errorf("accepted, want an error that says %q", says)
					continue
				}
				if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s4cret") {
					t.Errorf("got %v, want %q and no secret", err, says)
				}
				if says == "not accepted" && !errors.Is(err, trimtab.ErrRefused) {
					t.Errorf("got %v, want ErrRefused", err)
				}
			}
		})
	}
}

// doorman lets clients in or not, as the test says.
type doorman struct {
	shut    atomic.Bool
	refused atomic.Int64
}

func (d *doorman) Check(server.ClientAuthentication) bool {
	if d.shut.Load() {
		d.refused.Add(1)
		return false
	}
	return true
}

// A client that is refused twice with the same words would give up for good.
func TestABusThatIsRefusedForAWhileComesBack(t *testing.T) {
	t.Parallel()
	var d doorman
	s := serve(t, server.Options{CustomClientAuthentication: &d})
	b := open(t, Config{URL: "nats://" + s.Addr().String(), Login: Login{Token: "s3cret"}})
	d.shut.Store(true)
	if err := b.conn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return d.refused.Load() >= 4 && b.Ready() != nil })
	d.shut.Store(false)
	until(t, func() bool { return b.Ready() == nil })
	sendUntilStored(t, b, commandBy("one who was let in again"))
}

func TestATokenInAURLIsNotShown(t *testing.T) {
	for _, url := range []string{"nats://s3cret@127.0.0.1:1", "nats://me:s3cret@127.0.0.1:1", "nats://127.0.0.1:1,nats://s3cret@127.0.0.1:1"} {
		if _, err := Open(t.Context(), Config{URL: url, Source: "x"}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v, want an error without the secret", err)
		}
	}
}

func TestSecretsAreForOneServerAndOfOneKind(t *testing.T) {
	for _, c := range []Config{
		{Dir: "d", Login: Login{Token: "t"}}, {Dir: "d", CA: "ca.pem"}, {Dir: "d", TLS: &tls.Config{}},
		{URL: "nats://n", Login: Login{Token: "t", NKey: "seed"}}, {URL: "nats://n", Login: Login{Credentials: "c", NKey: "seed"}},
	} {
		c.Source = "x"
		if err := c.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", c, err)
		}
	}
}
