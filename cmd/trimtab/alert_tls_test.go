package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/internal/site"
)

// authority signs certificates of a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.key = key
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	a.write("ca", a.cert, key)
	return a
}

// write signs a certificate and writes it and its key to NAME.pem and NAME.key.
func (a *authority) write(name string, c *x509.Certificate, key *ecdsa.PrivateKey) {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *authority) issue(name string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, key)
}

// client trusts the authority and shows the named certificate; "": none.
func (a *authority) client(name string) *http.Client {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, "ca.pem"))
	if err != nil {
		a.t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(text)
	if name != "" {
		cert, err := tls.LoadX509KeyPair(filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key"))
		if err != nil {
			a.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// The web configuration is that of Prometheus's exporter toolkit. Its basic
// auth takes the header that a bearer token would need: the token is then the
// password, here "a token of the test".
func TestTheWebhookTakesClientCertificatesAndBasicAuthOfTheWebConfiguration(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("alertmanager")
	cfg := alertConfig(t, fixtureQuotas(t).root)
	cfg.Web.ConfigFile = filepath.Join(a.dir, "web.yml")
	open := func(more string) *site.Site {
		text := "tls_server_config: {cert_file: server.pem, key_file: server.key, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem}\n" + more
		if err := os.WriteFile(cfg.Web.ConfigFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := site.Open(t.Context(), cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	post := func(s *site.Site, client *http.Client, auth func(*http.Request)) int {
		req, err := http.NewRequest(http.MethodPost, "https://"+s.WebAddress()+alertmanager.Path, strings.NewReader(`{"version":"4","alerts":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		auth(req)
		resp, err := client.Do(req)
		if err != nil {
			t.Log(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer a token of the test") }
	nothing := func(*http.Request) {}
	s := open("")
	if got := post(s, a.client(""), bearer); got != 0 {
		t.Errorf("without a client certificate: %d", got)
	}
	if got := post(s, a.client("alertmanager"), nothing); got != http.StatusUnauthorized {
		t.Errorf("with a certificate and no token: %d", got)
	}
	if got := post(s, a.client("alertmanager"), bearer); got != http.StatusOK {
		t.Errorf("with both: %d", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open("basic_auth_users: {alertmanager: $2a$04$RTRxJf3Krh4YcBvBdBpaFOGDapovnvqorqqT/dW5iUz2Sfs2bEjFO}\n")
	defer s.Close()
	if got := post(s, a.client("alertmanager"), bearer); got != http.StatusUnauthorized {
		t.Errorf("a bearer token against basic auth: %d", got)
	}
	if got := post(s, a.client("alertmanager"), func(r *http.Request) { r.SetBasicAuth("alertmanager", "a token of the test") }); got != http.StatusOK {
		t.Errorf("the token as password: %d", got)
	}
}
