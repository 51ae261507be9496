package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// maxAnswer bounds what is read of one answer, after decompression. One
// number needs 200 bytes; more is read to be able to count several series.
const maxAnswer = 1 << 20

// maxRedirects bounds redirects, all on the same host.
const maxRedirects = 3

// client asks one server.
type client struct {
	http    *http.Client
	url     string
	timeout time.Duration
}

func newClient(base string, c promconfig.HTTPClientConfig, timeout time.Duration) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the URL is not http://host or https://host") // not quoted: it may hold a password
	}
	h, err := promconfig.NewClientFromConfig(c, "trimtab", promconfig.WithUserAgent("trimtab"))
	if err != nil {
		return nil, err
	}
	if c.FollowRedirects {
		h.CheckRedirect = sameHost
	}
	return &client{http: h, url: u.JoinPath("api/v1/query").String(), timeout: timeout}, nil
}

// sameHost refuses to be sent to another server: it would get our credentials'
// headers and could make us ask what only we can reach.
func sameHost(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &fault{kindRefused, fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	if next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme {
		return &fault{kindRefused, clip("redirect to another server refused: " + next.URL.Scheme + "://" + next.URL.Host)}
	}
	return nil
}

// ask evaluates expr now. The error is a *fault, or that of ctx.
func (c *client) ask(ctx context.Context, expr string) (all []number, warnings []string, err error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	form := url.Values{"query": {expr}, "timeout": {strconv.FormatFloat(c.timeout.Seconds(), 'f', -1, 64)}}
	response, err := c.send(limited, http.MethodPost, form)
	if err == nil && (response.StatusCode == http.StatusMethodNotAllowed || response.StatusCode == http.StatusNotImplemented) {
		response.Body.Close()
		response, err = c.send(limited, http.MethodGet, form) // a proxy in between that only reads
	}
	if err != nil {
		return nil, nil, c.unanswered(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, nil, c.unanswered(ctx, err)
	}
	if len(body) > maxAnswer {
		return nil, nil, &fault{kindTooLarge, fmt.Sprintf("the answer is larger than %d bytes: aggregate with sum()", maxAnswer)}
	}
	return readAnswer(response.StatusCode, response.Header.Get("Content-Type"), body)
}

func (c *client) send(ctx context.Context, method string, form url.Values) (*http.Response, error) {
	target, body := c.url, io.Reader(nil)
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

// unanswered turns a transport's error into a fault without the URL.
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
