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

// timeout is for one answer.
const timeout = 3 * time.Second

// Source is the GPUs of the DCGM exporter at the address that the configuration names.
func Source() poll.Source {
	s := poll.Source{Name: "dcgm", About: "use, memory and power of NVIDIA GPUs, of the host and of the pods of workloads, at the address of a DCGM exporter",
		Interval: 10 * time.Second, Key: poll.Sources, Check: check, Open: open}
	for _, k := range kinds() {
		s.Quantities = append(s.Quantities, k.quantity)
	}
	return s
}

const example = "write the address of the exporter on this host, such as http://localhost:9400/metrics"

// check refuses what is no address of an exporter, without quoting it.
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

// reader asks one exporter.
type reader struct {
	client   *http.Client
	url      string
	host     string
	pod      func(namespace, pod string) string
	lacks    []string
	interval time.Duration
}

// open probes the exporter. One that does not answer yet is no error: it is asked again.
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

// missing notes what the exporter lacks, by its last answer.
func (r *reader) missing(all map[device]*gpu, err error) {
	r.lacks = nil
	if err != nil {
		r.lacks = []string{fmt.Sprintf("no DCGM exporter at %s: %v (start dcgm-exporter on this host, or correct measure.sources.dcgm; it is asked again every %v)", r.url, err, r.interval)}
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
			r.lacks = append(r.lacks, fmt.Sprintf("%s: the exporter does not tell %s (its file of counters)", k.quantity, strings.Join(k.metrics, " or ")))
		}
	}
}

// Lacks lists what was missing in the last answer.
func (r *reader) Lacks() []string { return r.lacks }

// Close ends the connection.
func (r *reader) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// ask asks once.
func (r *reader) ask(ctx context.Context) (map[device]*gpu, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask exporter: %w", err)
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask exporter: %w", errors.Unwrap(err)) // without the address, which is told
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

// Read asks the exporter for everything.
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
