package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// maxAnswer is the largest answer that is read, in bytes after decompression. One number needs 200
// bytes; the rest allows counting several series.
const maxAnswer = 1 << 20

// maxRedirects bounds redirects, all on the same host.
const maxRedirects = 3

// wholeNow asks for all data as of now. Prometheus knows none of these parameters and
// ignores them.
func wholeNow() map[string]string {
	return map[string]string{
		"nocache":               "1",     // VictoriaMetrics: evaluate now, not 30 s ago
		"deny_partial_response": "1",     // VictoriaMetrics cluster: an error when a storage node is away
		"partial_response":      "false", // Thanos: an error when a store is missing
	}
}

// plainFor is how long wholeNow is left out after a server or proxy refused it.
const plainFor = 10 * time.Minute

// client asks one server.
type client struct {
	http    *http.Client
	url     string // of the API, with a trailing slash
	timeout time.Duration
	// plain is the time until which wholeNow is left out, in nanoseconds since 1970.
	plain atomic.Int64
}

func newClient(base string, c promconfig.HTTPClientConfig, timeout time.Duration) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the URL is not http://host or https://host") // not quoted: it may contain a password
	}
	h, err := promconfig.NewClientFromConfig(c, "trimtab", promconfig.WithUserAgent("trimtab"))
	if err != nil {
		return nil, err
	}
	if c.FollowRedirects {
		h.CheckRedirect = sameHost
	}
	return &client{http: h, url: u.JoinPath("api/v1/").String(), timeout: timeout}, nil
}

// sameHost refuses a redirect to another server, which would receive our credentials and could make
// us send requests to servers that only we can reach.
func sameHost(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &fault{kindRefused, fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	if next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme {
		return &fault{kindRefused, clip("redirect to another server refused: " + next.URL.Scheme + "://" + next.URL.Host)}
	}
	return nil
}

// ask evaluates expr at the present time. The error is a *fault, or that of ctx.
func (c *client) ask(ctx context.Context, expr string) (*reply, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	form := url.Values{"query": {expr}, "timeout": {strconv.FormatFloat(c.timeout.Seconds(), 'f', -1, 64)}}
	plain := func() (*reply, int, error) { return c.query(ctx, limited, form) }
	if time.Now().UnixNano() < c.plain.Load() {
		r, _, err := plain()
		return r, err
	}
	whole := maps.Clone(form)
	for name, value := range wholeNow() {
		whole.Set(name, value)
	}
	r, status, err := c.query(ctx, limited, whole)
	f := (*fault)(nil)
	if !errors.As(err, &f) || f.kind != kindRefused || !slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden,
		http.StatusUnprocessableEntity, http.StatusServiceUnavailable}, status) {
		return r, err
	}
	// Either a proxy does not know the parameters, or the server rejects one of them, and the
	// query without them succeeds; or else the query is wrong, and fails again.
	again, _, plainErr := plain()
	switch {
	case plainErr == nil:
		if status != http.StatusServiceUnavailable { // that was a store that is back
			c.plain.Store(time.Now().Add(plainFor).UnixNano())
		}
		return again, nil
	case errors.As(plainErr, &f) && f.kind == kindPartial:
		return nil, plainErr
	}
	return nil, err
}

// query sends one instant query. limited is ctx with a time limit; status is 0 if there was no
// answer, or that of an overloaded server outside of the API.
func (c *client) query(ctx, limited context.Context, form url.Values) (r *reply, status int, err error) {
	response, err := c.send(limited, http.MethodPost, "query", form)
	if err == nil && (response.StatusCode == http.StatusMethodNotAllowed || response.StatusCode == http.StatusNotImplemented) {
		response.Body.Close()
		response, err = c.send(limited, http.MethodGet, "query", form) // a proxy may allow only GET
	}
	if err != nil {
		return nil, 0, c.unanswered(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, c.unanswered(ctx, err)
	}
	if len(body) > maxAnswer {
		return nil, 0, &fault{kindTooLarge, fmt.Sprintf("the answer is larger than %d bytes: aggregate with sum()", maxAnswer)}
	}
	media := response.Header.Get("Content-Type")
	r, err = readReply(response.StatusCode, media, body)
	if status = response.StatusCode; status/100 == 5 && !strings.HasPrefix(media, "application/json") {
		status = 0
	}
	return r, status, err
}

func (c *client) send(ctx context.Context, method, path string, form url.Values) (*http.Response, error) {
	target, body := c.url+path, io.Reader(nil)
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	} else {
		target += "?" + form.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return c.http.Do(request)
}

// unanswered converts a transport error into a fault that does not contain the URL.
func (c *client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // we are stopping
	}
	var f *fault
	var u *url.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return &fault{kindTimeout, fmt.Sprintf("no answer within %s", c.timeout)}
	case errors.As(err, &u):
		err = u.Err
	}
	return &fault{kindUnreachable, clip(fmt.Sprintf("cannot ask Prometheus: %v", err))}
}
