// Package scrub hides secrets in texts that leave the machine: log lines, debug bundles, addresses
// in messages. It is the last line of defence: its inputs should not contain secrets in the first
// place.
package scrub

import (
	"net/url"
	"regexp"
	"strings"
)

// hiddenSecret replaces a secret, as in a shown configuration.
const hiddenSecret = "<secret>"

// secretKeys are words before a colon or equals sign that a secret follows.
const secretKeys = `(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credentials?|private[_-]?key)`

// Scrubber hides secrets. Make it with [New].
type Scrubber struct {
	patterns []*regexp.Regexp
	// known are secrets of this process's environment, wherever they stand.
	known []string
}

// New knows the secrets among environment ("NAME=value" each).
func New(environment []string) *Scrubber {
	s := &Scrubber{}
	for _, p := range []string{
		// The user and password of a URL, up to the last @ of the word.
		`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"'<>]*(@)`,
		`(?i)((?:authorization|cookie)["']?\s*[:=]\s*["']?)[^\r\n"']+`,
		`(?i)(\bbearer\s+)[^\s"',;]+`,
		`(?i)(\bbasic\s+)[A-Za-z0-9+/=]{8,}`,
		`(?i)(` + secretKeys + `\\*["']?\s*[:=]\s*\\*["'])[^"'\r\n\\]*()`,
		`(?i)(` + secretKeys + `\\*["']?\s*[:=]\s*)[^\s,;}&"'\\]+`,
		`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
		`()\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`,
		// Seeds of NATS keys.
		`()\bS[ACNOPUX][A-Z2-7]{50,}\b`,
	} {
		s.patterns = append(s.patterns, regexp.MustCompile(p))
	}
	secret := regexp.MustCompile(`(?i)pass|secret|token|key|credential|auth|headers|cookie`)
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		if secret.MatchString(name) && len(value) >= 6 {
			s.known = append(s.known, value)
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if p, ok := u.User.Password(); ok && p != "" {
				s.known = append(s.known, p)
			}
		}
	}
	return s
}

// Bytes returns b without secrets.
func (s *Scrubber) Bytes(b []byte) []byte {
	text := string(b)
	for _, k := range s.known {
		text = strings.ReplaceAll(text, k, hiddenSecret)
	}
	for _, p := range s.patterns {
		text = p.ReplaceAllString(text, "${1}"+hiddenSecret+"${2}")
	}
	return []byte(text)
}

// URL is an address without user and password, for messages.
func URL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return string(New(nil).Bytes([]byte(address)))
	}
	if u.User != nil {
		u.User = nil
		return u.String()
	}
	return address
}
