package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab/trimtab"
)

// The validity of the CA certificate and of the certificates that it signs.
const (
	authorityFor   = 10 * 365 * 24 * time.Hour
	certificateFor = 2 * 365 * 24 * time.Hour
	// before lets clocks of hosts differ.
	before = time.Hour
)

// authority signs the certificates of one site.
type authority struct {
	cert *x509.Certificate
	pem  string
	key  *ecdsa.PrivateKey
}

// openAuthority reads the authority of dir, or makes one.
func openAuthority(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	text, err := os.ReadFile(certFile)
	if errors.Is(err, fs.ErrNotExist) {
		return makeAuthority(certFile, keyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("read key of the authority: %w", err)
	}
	certBlock, _ := pem.Decode(text)
	keyBlock, _ := pem.Decode(key)
	if certBlock == nil || keyBlock == nil {
		return nil, trimtab.Invalidf("read authority: %s or %s is no PEM file", certFile, keyFile)
	}
	a := &authority{pem: string(text)}
	if a.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return nil, fmt.Errorf("read %s: %w", certFile, err)
	}
	if a.key, err = x509.ParseECPrivateKey(keyBlock.Bytes); err != nil {
		return nil, fmt.Errorf("read %s: %w", keyFile, err)
	}
	return a, nil
}

func makeAuthority(certFile, keyFile string) (*authority, error) {
	a := &authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make key of the authority: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "trimtab cluster authority"}, NotBefore: now.Add(-before), NotAfter: now.Add(authorityFor),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := a.sign(template, template, &a.key.PublicKey)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read new authority: %w", err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key, err := keyText(a.key)
	if err != nil {
		return nil, err
	}
	// The certificate last: with it alone, the next run would find no key.
	if err := writeFile(keyFile, key, 0o600); err != nil {
		return nil, err
	}
	return a, writeFile(certFile, a.pem, 0o644)
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

// issue writes cert.pem, key.pem and ca.pem to dir, for a server or a client. Existing files
// stay.
func (a *authority) issue(dir, name string, server bool) error {
	certFile := filepath.Join(dir, "cert.pem")
	if err := writeFile(filepath.Join(dir, "ca.pem"), a.pem, 0o644); err != nil {
		return err
	}
	if _, err := os.Stat(certFile); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key of %s: %w", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-before), NotAfter: now.Add(certificateFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if server { // a server is also the client of the other servers
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	// As a name an address too: a server compares these with its routes.
	template.DNSNames = []string{name}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := a.sign(template, a.cert, &key.PublicKey)
	if err != nil {
		return err
	}
	text, err := keyText(key)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "key.pem"), text, 0o600); err != nil {
		return err
	}
	return writeFile(certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o644)
}

func keyText(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("write private key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), nil
}
