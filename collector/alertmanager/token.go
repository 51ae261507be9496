package alertmanager

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// maxToken bounds a token file, in bytes.
const maxToken = 4096

// readToken returns the hash of the token in the file, without surrounding space. An error's text
// never contains the token.
func readToken(name string) ([sha256.Size]byte, error) {
	var none [sha256.Size]byte
	text, err := hostfs.ReadFile(name, maxToken)
	if err != nil {
		return none, err
	}
	token := bytes.TrimSpace(text)
	if len(token) == 0 {
		return none, trimtab.Invalidf("%s: %d bytes, want a token of 1 to %d", name, len(text), maxToken)
	}
	return sha256.Sum256(token), nil
}

// allowed returns the refusal of a request without the right token; ok if it may proceed. The
// token comes as a bearer token, or as the password of basic auth, for a site whose web
// configuration asks for basic auth in the same header.
func (r *Receiver) allowed(req *http.Request) (refusal, bool) {
	if r.config.TokenFile == "" {
		return refusal{http.StatusForbidden, "unconfigured", "no token is configured: set alertmanager.token_file in trimtab's configuration, and http_config.authorization.credentials_file in Alertmanager's"}, false
	}
	given, ok := givenToken(req)
	if !ok {
		return refusal{http.StatusUnauthorized, "unauthorized", "a bearer token is needed: that of alertmanager.token_file"}, false
	}
	want, err := readToken(r.config.TokenFile)
	if err != nil {
		r.config.Logger.Error("alertmanager webhook: the token cannot be read: nobody is let in", "err", err)
		return refusal{http.StatusServiceUnavailable, "unconfigured", "the token cannot be read: see trimtab's log"}, false
	}
	got := sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return refusal{http.StatusUnauthorized, "unauthorized", "the token is not that of alertmanager.token_file"}, false
	}
	return refusal{}, true
}

func givenToken(req *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token), true
	}
	_, password, ok := req.BasicAuth()
	return password, ok
}

// refusal is the answer to a request that was not accepted.
type refusal struct {
	code int
	// result labels the count, text is for people.
	result, text string
}

func (f refusal) Error() string { return fmt.Sprintf("%d: %s", f.code, f.text) }
