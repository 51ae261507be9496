package dcgm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
)

// timeout is the time limit for one answer of the exporter.
const timeout = 3 * time.Second

// Source returns the source that reads the GPUs from the DCGM exporter at the configured address.
func Source() poll.Source {
	s := poll.Source{Name: "dcgm", About: "use, memory and power of NVIDIA GPUs, of the host and of the pods of workloads, at the address of a DCGM exporter",
		Interval: 10 * time.Second, Key: poll.Sources, Check: check, Open: open}
	for _, k := range kinds() {
		s.Quantities = append(s.Quantities, k.quantity)
	}
	return s
}

const example = "write the address of the exporter on this host, such as http://localhost:9400/metrics"

// check returns an error if the setting is not the address of an exporter. The error does not quote
// the setting, which may contain a password.
func check(setting string) (hint string, err error) {
	u, err := url.Parse(setting)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return example, errors.New("the address of the DCGM exporter is not http://host or https://host")
	case u.User != nil:
		return "leave user and password out: trimtab asks without", errors.New("the address of the DCGM exporter has a user in it")
	}
	return "", nil
}

// reader reads from one exporter.
type reader struct {
	client      *http.Client
	url         string
	host        string
	pod         func(namespace, pod string) string
	unavailable []string
	interval    time.Duration
}

// open reads the exporter once. It is no error if the exporter does not answer yet: each round asks
// again.
func open(c poll.Config) (poll.Reader, error) {
	if len(c.Settings) != 1 {
		return nil, trimtab.Invalidf("no address of a DCGM exporter")
	}
	u, err := url.Parse(c.Settings[0])
	if err != nil {
		return nil, trimtab.Invalidf("address of the DCGM exporter: %w", err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	r := &reader{url: u.String(), host: c.Host, pod: c.Pod, interval: c.Interval, client: &http.Client{Timeout: timeout, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	r.missing(r.ask(context.Background()))
	return r, nil
}

// missing records which values the exporter's last answer did not have.
func (r *reader) missing(all map[device]*gpu, err error) {
	r.unavailable = nil
	if err != nil {
		r.unavailable = []string{fmt.Sprintf("no DCGM exporter at %s: %v (start dcgm-exporter on this host, or correct measure.sources.dcgm; it is asked again every %v)", r.url, err, r.interval)}
		return
	}
	told := map[string]bool{}
	for _, g := range all {
		for metric := range g.values {
			told[metric] = true
		}
	}
	for _, k := range kinds() {
		if !slices.ContainsFunc(k.metrics, func(metric string) bool { return told[metric] }) {
			r.unavailable = append(r.unavailable, fmt.Sprintf("%s: the exporter does not tell %s (its file of counters)", k.quantity, strings.Join(k.metrics, " or ")))
		}
	}
}

// Unavailable lists the values that the last answer did not have.
func (r *reader) Unavailable() []string { return r.unavailable }

// Close closes idle connections.
func (r *reader) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// ask requests the exposition once.
func (r *reader) ask(ctx context.Context) (map[device]*gpu, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask exporter: %w", err)
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask exporter: %w", errors.Unwrap(err)) // without the URL
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask exporter: it answers %d", answer.StatusCode)
	}
	all, err := decode(answer.Body)
	if err == nil && len(all) == 0 {
		err = errors.New("ask exporter: it tells of no GPU")
	}
	return all, err
}

// Read requests the exposition and returns the samples of the host and of all pods.
func (r *reader) Read(ctx context.Context, _ []poll.Group) ([]*trimtab.Sample, error) {
	all, err := r.ask(ctx)
	if ctx.Err() == nil {
		r.missing(all, err)
	}
	if err != nil {
		return nil, err
	}
	samples := ofHost(all)
	if r.pod != nil {
		samples = append(samples, ofPods(all, r.host, r.pod)...)
	}
	return samples, nil
}
