// Package client asks a running trimtab: /api/v1 and what else its web server
// answers, with the types of package console. Errors name the address without
// user and password, and carry a hint where a person can do something.
//
//	c := client.Client{URL: "http://127.0.0.1:9600"}
//	status, err := c.Status(ctx)
//
// It prints nothing and keeps no state: each call is one request of at most
// 10 s.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/scrub"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/whatif"
)

const (
	// timeout bounds a call.
	timeout = 10 * time.Second
	// most bounds an answer, in bytes.
	most = 64 << 20
	// StatusPath requests every workload and host that a view has.
	StatusPath = "/api/v1/status?limit=10000&hosts=10000"
)

// Client asks the trimtab at an address.
type Client struct {
	// URL is the address of the page; it may contain a user and a password.
	URL string
	// Terminal makes every string of an answer [Printable]. Programs want the
	// names as they are.
	Terminal bool
}

// Status returns the pool, all workloads and all hosts.
func (c Client) Status(ctx context.Context) (*view.Status, error) {
	return get[view.Status](ctx, c, StatusPath)
}

// Explain returns why a workload has its allocation, with up to history earlier decisions.
func (c Client) Explain(ctx context.Context, workload string, history int) (*view.Explanation, error) {
	e, err := get[view.Explanation](ctx, c, ExplainPath(workload, history))
	return e, hint.Else(err, "trimtab status lists the workloads, and on the host that keeps them the best-effort jobs")
}

// ExplainPath returns the path that requests this.
func ExplainPath(workload string, history int) string {
	segment, query := view.Path(workload)
	return fmt.Sprintf("/api/v1/workloads/%s?history=%d&%s", segment, history, query)
}

// Pipeline returns the state of the process's stages.
func (c Client) Pipeline(ctx context.Context) (*view.Pipeline, error) {
	return get[view.Pipeline](ctx, c, "/api/v1/pipeline")
}

// Plan returns the newest plan.
func (c Client) Plan(ctx context.Context) (*view.Planned, error) {
	return get[view.Planned](ctx, c, "/api/v1/plan")
}

// Applied returns the plan that answers the request to apply plan id.
func (c Client) Applied(ctx context.Context, id string) (*trimtab.Plan, error) {
	return get[trimtab.Plan](ctx, c, "/api/v1/applied/"+url.PathEscape(id))
}

// Diff returns the allocations that differ from the planner's target.
func (c Client) Diff(ctx context.Context) ([]view.Difference, error) {
	d, err := get[[]view.Difference](ctx, c, "/api/v1/diff")
	if err != nil {
		return nil, err
	}
	return *d, nil
}

// Fairness returns how fair the allocation is.
func (c Client) Fairness(ctx context.Context) (*view.Audited, error) {
	return get[view.Audited](ctx, c, "/api/v1/fairness")
}

// Report returns the effect of trimtab since a time, or over a duration ("7d").
func (c Client) Report(ctx context.Context, since string) (*view.Report, error) {
	return get[view.Report](ctx, c, "/api/v1/report?"+url.Values{"since": {since}}.Encode())
}

// WhatIf returns the objective's allocation after a change.
func (c Client) WhatIf(ctx context.Context, change whatif.Change) (*whatif.Answer, error) {
	q := url.Values{}
	for name, v := range change.Capacity {
		q.Set("capacity:"+name, fmt.Sprint(v))
	}
	for name, v := range change.SLO {
		q.Set("slo:"+name, v)
	}
	for name, v := range change.Weight {
		q.Set("weight:"+name, fmt.Sprint(v))
	}
	return get[whatif.Answer](ctx, c, "/api/v1/what-if?"+q.Encode())
}

// Jobs returns the state of the host's best-effort jobs; nil: it has none, or does not answer.
func (c Client) Jobs(ctx context.Context) *view.Colocation {
	j, err := get[view.Colocation](ctx, c, "/api/v1/jobs")
	if err != nil || j.Host == "" {
		return nil
	}
	return j
}

// Colocations returns the hosts of a fleet that have best-effort jobs, or the job or
// service that is named; nil: the process does not know, or does not answer.
func (c Client) Colocations(ctx context.Context, f view.JobFilter) *view.FleetJobs {
	all, err := get[view.FleetJobs](ctx, c, "/api/v1/colocation?"+url.Values{"job": {f.Job}, "service": {f.Service}}.Encode())
	if err != nil {
		return nil
	}
	return all
}

// Colocation returns the state of the jobs of a host in a fleet; nil: unknown.
func (c Client) Colocation(ctx context.Context, host string) *view.HostColocation {
	segment, query := view.Path(host)
	j, err := get[view.HostColocation](ctx, c, "/api/v1/colocation/"+segment+"?"+query)
	if err != nil || j.Colocation == nil || j.Host == "" {
		return nil
	}
	return j
}

// Send sends a command and returns it as accepted.
func (c Client) Send(ctx context.Context, command trimtab.Command) (*trimtab.Command, error) {
	b, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("print request: %w", err)
	}
	return call[trimtab.Command](ctx, c, http.MethodPost, "/api/v1/commands", b)
}

// Batch returns the state of the speculative jobs.
func (c Client) Batch(ctx context.Context) (*view.Batch, error) {
	return get[view.Batch](ctx, c, "/api/v1/batch")
}

// BatchJob returns the state of one of them, with its tasks.
func (c Client) BatchJob(ctx context.Context, name string) (*view.JobState, error) {
	return get[view.JobState](ctx, c, "/api/v1/batch/"+url.PathEscape(name))
}

// BatchTask returns the state of one task.
func (c Client) BatchTask(ctx context.Context, job, task string) (*view.TaskState, error) {
	return get[view.TaskState](ctx, c, "/api/v1/batch/"+url.PathEscape(job)+"/"+url.PathEscape(task))
}

// JobRequest sends a request to the job manager and returns it as accepted.
func (c Client) JobRequest(ctx context.Context, r speculation.JobRequest) (*speculation.JobRequest, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("print request: %w", err)
	}
	return call[speculation.JobRequest](ctx, c, http.MethodPost, "/api/v1/batch", b)
}

// Alert sends the body of a webhook as Alertmanager would, with the token if there is one, and
// returns the result.
func (c Client) Alert(ctx context.Context, body []byte, token string) (*alertmanager.Summary, error) {
	a, err := c.do(ctx, http.MethodPost, alertmanager.Path, body, token)
	if err != nil {
		return nil, fmt.Errorf("send alert: %w", err)
	}
	var s struct {
		alertmanager.Summary
		Error string
	}
	if err := json.Unmarshal(a.body, &s); err != nil {
		return nil, stranger(fmt.Errorf("send alert: %s: read answer: %w", a.status, err))
	}
	switch a.code {
	case http.StatusOK:
		return &s.Summary, nil
	case http.StatusUnauthorized:
		return nil, hint.Add(fmt.Errorf("send alert: %s: %s", a.status, s.Error), "name the token's file with --token-file, or the configuration with --config.file")
	}
	return nil, fmt.Errorf("send alert: %s: %s", a.status, s.Error)
}

// Config returns the configuration in force, as YAML without its secrets.
func (c Client) Config(ctx context.Context) ([]byte, error) {
	a, err := c.do(ctx, http.MethodGet, "/api/v1/config", nil, "")
	if err == nil && a.code != http.StatusOK {
		err = stranger(fmt.Errorf("ask %s for its configuration: %s", scrub.URL(c.URL), a.status))
	}
	return a.body, err
}

// Text returns the body of an answer as it is. One that says no is an answer
// too, which begins with its status.
func (c Client) Text(ctx context.Context, path string) ([]byte, error) {
	a, err := c.do(ctx, http.MethodGet, path, nil, "")
	if err == nil && a.code != http.StatusOK {
		return append([]byte(a.status+"\n"), a.body...), nil
	}
	return a.body, err
}

func get[T any](ctx context.Context, c Client, path string) (*T, error) {
	return call[T](ctx, c, http.MethodGet, path, nil)
}

// call does one request of the API and decodes the answer.
func call[T any](ctx context.Context, c Client, method, path string, body []byte) (*T, error) {
	a, err := c.do(ctx, method, path, body, "")
	if err != nil {
		return nil, err
	}
	if a.code/100 != 2 {
		var p struct{ Error string }
		if json.Unmarshal(a.body, &p) == nil && p.Error != "" {
			return nil, errors.New(Printable(p.Error))
		}
		return nil, fmt.Errorf("ask %s%s: %s: %s", scrub.URL(c.URL), path, a.status, Printable(strings.TrimSpace(string(a.body))))
	}
	if c.Terminal {
		if shown, err := printableJSON(a.body); err == nil {
			a.body = shown
		}
	}
	into := new(T)
	if err := json.Unmarshal(a.body, into); err != nil {
		return nil, stranger(fmt.Errorf("read answer of %s: %w", scrub.URL(c.URL), err))
	}
	return into, nil
}

// stranger is the error of an answer that trimtab does not give.
func stranger(err error) error { return hint.Add(err, "is that a trimtab of this version?") }

// answer is a response of the server.
type answer struct {
	code   int
	status string
	body   []byte
}

// do does one request.
func (c Client) do(ctx context.Context, method, path string, body []byte, token string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		// Without the cause, which quotes the address and so perhaps a password.
		return a, hint.Add(fmt.Errorf("ask %s: not an address", scrub.URL(c.URL)), "--url takes an address like http://127.0.0.1:9600")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		// The address is said once.
		err = u.Err
	}
	if errors.Is(err, syscall.ENETUNREACH) && loopback(req.URL) {
		return a, hint.Add(fmt.Errorf("ask %s: the loopback interface is down: %w", scrub.URL(c.URL), err), hint.Loopback)
	}
	if err != nil {
		return a, hint.Add(fmt.Errorf("ask %s: %w", scrub.URL(c.URL), err), "is trimtab running there? start it with `trimtab run`, or name another with --url or TRIMTAB_URL")
	}
	defer resp.Body.Close()
	a = answer{code: resp.StatusCode, status: resp.Status}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, most)); err != nil {
		return a, fmt.Errorf("read answer of %s: %w", scrub.URL(c.URL), err)
	}
	return a, nil
}

// loopback reports whether a URL names this host by a loopback address.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
