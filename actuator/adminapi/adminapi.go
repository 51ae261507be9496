// Package adminapi sends single requests to the HTTP admin API of a proxy before a service. It
// bounds how long one may take and how long an answer may be, follows no redirect, and keeps no
// connection open. It does not know what the answers mean.
//
//	b, err := adminapi.API{Name: "the gate", Most: 64 << 10}.Call(ctx, "unix:/run/shop.gate", http.MethodGet, "/v1/limit", nil)
package adminapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// patience is the time limit for one call, from its start to the last byte of the answer.
const patience = 2 * time.Second

// maxSocketPath is the longest path of a Unix socket that the kernel accepts, in bytes.
const maxSocketPath = 107

// API is the admin API of one kind of proxy.
type API struct {
	// Name is the proxy in messages.
	Name string
	// Start says what to do if nothing listens at the address.
	Start string
	// Most is the longest answer that is read, in bytes.
	Most int64
	// Dial connects to the proxy; nil: to the address of the call.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Dialed splits an address (unix:/PATH or http://HOST:PORT) into a network and an address to dial.
func Dialed(text string) (network, address string, err error) {
	if file, ok := strings.CutPrefix(text, "unix:"); ok {
		if !filepath.IsAbs(file) || len(file) > maxSocketPath || strings.ContainsAny(file, "\x00\n*") {
			return "", "", trimtab.Invalidf("admin address %.120q: want unix: and an absolute path of at most %d bytes", text, maxSocketPath)
		}
		return "unix", filepath.Clean(file), nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || strings.Contains(text, "*") {
		return "", "", trimtab.Invalidf("admin address %.120q: want http://HOST:PORT, or unix:/PATH", text)
	}
	return "tcp", u.Host, nil
}

// Call sends one request in a new connection and returns the body of the answer. path may have a
// query; body may be nil. The error is trimtab.ErrRefused, with the beginning of the answer, if its
// status is not 2xx.
func (a API) Call(ctx context.Context, at, method, path string, body []byte) ([]byte, error) {
	network, address, err := Dialed(at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	host := address
	if network == "unix" {
		host = "localhost"
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+host+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s at %s: %w", a.Name, at, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if a.Dial != nil {
					return a.Dial(ctx)
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("ask %s: %w: %s", a.Name, err, a.Start)
		}
		return nil, fmt.Errorf("ask %s: %w", a.Name, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, a.Most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s at %s: %w", a.Name, at, err)
	case answer.StatusCode/100 != 2:
		return nil, fmt.Errorf("ask %s at %s: it answers %s: %.120q: %w", a.Name, at, answer.Status, b, trimtab.ErrRefused)
	case int64(len(b)) > a.Most:
		return nil, fmt.Errorf("ask %s at %s: an answer of more than %d bytes: %w", a.Name, at, a.Most, trimtab.ErrRefused)
	}
	return b, nil
}
