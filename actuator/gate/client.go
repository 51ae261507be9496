package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// patience is the time limit for one call to the gate, from its start to the last byte of the
	// answer.
	patience = 2 * time.Second
	// maxAnswer bounds an answer, which has about 300 bytes.
	maxAnswer = 64 << 10
	// maxSocketPath is the longest path of a Unix socket that the kernel accepts, in bytes.
	maxSocketPath = 107
)

// limits is the JSON document that a gate returns from its limit API.
type limits struct {
	// Limit is the limit that the gate's own rule has set; nil: it set none.
	Limit    *float64  `json:"limit"`
	Envelope *envelope `json:"envelope"`
}

// envelope is the range in which the gate's rule may move the limit. With a nil Max the range has
// no upper end.
type envelope struct {
	Min       float64  `json:"min"`
	Max       *float64 `json:"max"`
	Rate      *float64 `json:"rate"`
	LeaseLeft float64  `json:"lease_left_ms"`
}

// max returns the largest number of requests that the envelope allows in service.
func (l *limits) max() trimtab.Amount {
	if l.Envelope == nil || l.Envelope.Max == nil {
		return trimtab.Unlimited()
	}
	return trimtab.Units(*l.Envelope.Max)
}

// parse decodes the document. It is an error if the document has no envelope.
func parse(b []byte) (l limits, err error) {
	var raw map[string]json.RawMessage
	if err = json.Unmarshal(b, &raw); err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return limits{}, trimtab.Invalidf("read the limit of the gate: %w", err)
	}
	if _, ok := raw["envelope"]; !ok {
		return limits{}, trimtab.Invalidf("%.60q is no answer of a gate to /v1/limit: is this its admin address?", b)
	}
	if v := l.max(); !v.Unlimited && !(v.Value >= 1 && v.Value <= most && v.Value == math.Trunc(v.Value)) {
		return limits{}, trimtab.Invalidf("the gate has a max of %v, want a whole number from 1 to %d", v, most)
	}
	if e := l.Envelope; e != nil && !(e.LeaseLeft >= 0) {
		return limits{}, trimtab.Invalidf("the gate has %v ms of a lease left", e.LeaseLeft)
	}
	return l, nil
}

// dialed splits the URL of the admin API (unix:/PATH or http://HOST:PORT) into a network and an
// address to dial.
func dialed(text string) (network, address string, err error) {
	if file, ok := strings.CutPrefix(text, "unix:"); ok {
		if !filepath.IsAbs(file) || len(file) > maxSocketPath || strings.ContainsAny(file, "\x00\n*") {
			return "", "", trimtab.Invalidf("gate %.120q: want unix: and an absolute path of at most %d bytes", text, maxSocketPath)
		}
		return "unix", filepath.Clean(file), nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || strings.Contains(text, "*") {
		return "", "", trimtab.Invalidf("gate %.120q: want http://HOST:PORT, or unix:/PATH", text)
	}
	return "tcp", u.Host, nil
}

// call sends one request to the gate, in a new connection, and decodes the answer. body may be nil.
func call(ctx context.Context, gate, method string, body []byte) (limits, error) {
	network, address, err := dialed(gate)
	if err != nil {
		return limits{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	host := address
	if network == "unix" {
		host = "gate"
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+host+"/v1/limit", bytes.NewReader(body))
	if err != nil {
		return limits{}, fmt.Errorf("ask the gate at %s: %w", gate, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return limits{}, fmt.Errorf("ask the gate: %w%s", err, remedy(err))
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return limits{}, fmt.Errorf("ask the gate at %s: %w", gate, err)
	case answer.StatusCode/100 != 2:
		return limits{}, fmt.Errorf("ask the gate at %s: it answers %s: %.120q: %w", gate, answer.Status, b, trimtab.ErrRefused)
	case len(b) > maxAnswer:
		return limits{}, fmt.Errorf("ask the gate at %s: an answer of more than %d bytes: %w", gate, maxAnswer, trimtab.ErrRefused)
	case method == http.MethodDelete && len(b) == 0:
		return limits{}, nil
	}
	return parse(b)
}

// remedy returns a hint for the operator on how to repair a failed connection.
func remedy(err error) string {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ": start `trimtab gate`, or name its admin address"
	}
	return ""
}
