package site

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

// tlsFiles has the content of the files of a TLS section.
type tlsFiles struct {
	// cert, key and ca are the contents of the files. A reload compares them, so that a renewed
	// certificate is used.
	cert, key, ca []byte
	pair          []tls.Certificate
	pool          *x509.CertPool
}

// content returns the content of the files.
func (f *tlsFiles) content() [][]byte {
	if f == nil {
		return nil
	}
	return [][]byte{f.cert, f.key, f.ca}
}

// readTLS reads the files that a section names; nil if it names none. Errors name the owner of the
// certificate (whom) and those whose certificates are verified (peers).
func readTLS(c config.TLS, whom, peers string) (f *tlsFiles, err error) {
	if c == (config.TLS{}) {
		return nil, nil
	}
	f = &tlsFiles{}
	for _, r := range []struct {
		into *[]byte
		file string
		what string
	}{{&f.cert, c.CertFile, "certificate of " + whom}, {&f.key, c.KeyFile, "key of " + whom}, {&f.ca, c.CAFile, "authorities of " + peers}} {
		if r.file == "" {
			continue
		}
		if *r.into, err = os.ReadFile(r.file); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.what, err)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.X509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("read certificate of %s: %w", whom, err)
		}
		f.pair = []tls.Certificate{pair}
	}
	if c.CAFile != "" {
		if f.pool = x509.NewCertPool(); !f.pool.AppendCertsFromPEM(f.ca) {
			return nil, trimtab.Invalidf("authorities of %s: no certificate in %s", peers, c.CAFile)
		}
	}
	return f, nil
}

// server returns the TLS configuration of a receiver, which verifies client certificates if a CA is
// configured; nil without files.
func (f *tlsFiles) server() *tls.Config {
	if f == nil {
		return nil
	}
	out := &tls.Config{Certificates: f.pair, MinVersion: tls.VersionTLS12}
	if f.pool != nil {
		out.ClientCAs, out.ClientAuth = f.pool, tls.RequireAndVerifyClientCert
	}
	return out
}

// client returns the TLS configuration for an endpoint; nil without files.
func (f *tlsFiles) client() *tls.Config {
	if f == nil {
		return nil
	}
	return &tls.Config{Certificates: f.pair, RootCAs: f.pool, MinVersion: tls.VersionTLS12}
}
