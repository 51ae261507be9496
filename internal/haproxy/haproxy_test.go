package haproxy_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/haproxy/haproxytest"
)

var shop = haproxy.Classes{Backend: "shop", Header: "x-priority", Names: []string{"critical", "normal", "low"}}

// service is a HAProxy with the printed lines before a service that answers when it is told to.
type service struct {
	*haproxytest.Program
	classes haproxy.Classes
	// arrived has each request that reached the service, answers lets one of them go.
	arrived, answers chan struct{}
}

func serve(t *testing.T, maxconn int) *service {
	t.Helper()
	s := &service{classes: shop, arrived: make(chan struct{}, 100), answers: make(chan struct{})}
	dir := t.TempDir()
	upstream := filepath.Join(dir, "up")
	l, err := net.Listen("unix", upstream)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrived <- struct{}{}
		select {
		case <-s.answers:
		case <-r.Context().Done():
		}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	s.classes.Map = filepath.Join(dir, "map")
	if err := s.classes.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.classes.Map, []byte(s.classes.File()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Program = haproxytest.Start(t, "shop", haproxytest.Front+s.classes.Lines(time.Second)+fmt.Sprintf("  server web1 unix@%s maxconn %d\n", upstream, maxconn))
	return s
}

// ask sends one request and returns a channel that gets its answer.
func (s *service) ask(t *testing.T, header ...string) chan *http.Response {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(s.Dir, "http"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", strings.Join(append(header, ""), "\r\n"))
	got := make(chan *http.Response, 1)
	go func() {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			r = &http.Response{}
		}
		got <- r
	}()
	return got
}

func (s *service) look(t *testing.T, commands ...string) (haproxy.Backend, string) {
	t.Helper()
	b, err := haproxy.Look(t.Context(), s.Socket, "shop", commands...)
	if err != nil {
		t.Fatal(err)
	}
	return b, b.Rest
}

func (s *service) set(t *testing.T, commands ...string) {
	t.Helper()
	if _, rest := s.look(t, commands...); haproxy.Set(rest) != nil {
		t.Fatalf("%q answers %q", commands, rest)
	}
}

func (s *service) counts(t *testing.T) map[string]haproxy.Class {
	t.Helper()
	_, rest := s.look(t, s.classes.ShowTable())
	all, err := haproxy.ParseTable(rest)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fill has n critical requests under way.
func (s *service) fill(t *testing.T, n int) {
	t.Helper()
	for range n {
		s.ask(t, "x-priority: critical")
	}
	for end := time.Now().Add(5 * time.Second); s.counts(t)["critical"].Underway < uint64(n) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // a real process reads them
	}
}

func later() int64 { return time.Now().Add(time.Minute).Unix() }

func TestHAProxyRefusesAClassBeyondItsBoundAndItsRetriesFirst(t *testing.T) {
	s := serve(t, 1)
	s.fill(t, 4)
	s.set(t, s.classes.SetBounds([]int{9, 9, 5, 4, 4, 3}, later())...)
	for _, c := range []struct {
		header  []string
		refused bool
	}{
		{[]string{"x-priority: low"}, true},
		{[]string{"x-envoy-attempt-count: 2"}, true},
		{[]string{"x-priority: normal", "grpc-previous-rpc-attempts: 1"}, true},
		{[]string{"x-priority: nobody-knows"}, false}, // normal, and the fifth
		{[]string{"x-priority: normal"}, true},
		{[]string{"x-priority: CRITICAL", "x-envoy-attempt-count: 1"}, false},
	} {
		got := s.ask(t, c.header...)
		select {
		case r := <-got:
			after, err := strconv.Atoi(r.Header.Get("Retry-After"))
			if !c.refused || r.StatusCode != http.StatusServiceUnavailable || err != nil || after < 1 || after > 3 {
				t.Errorf("%v: %+v", c.header, r)
			}
		case <-time.After(200 * time.Millisecond):
			if c.refused {
				t.Errorf("%v: it waits", c.header)
			}
		}
	}
	got := s.counts(t)
	for name, c := range got {
		c.Admitted = 0
		got[name] = c
	}
	want := map[string]haproxy.Class{"critical": {Requests: 5, Underway: 5}, "normal": {Requests: 4, Underway: 1}, "low": {Requests: 1}}
	if !maps.Equal(got, want) || got["normal"].NotServed() != 3 {
		t.Errorf("it counts %+v, want %+v", got, want)
	}
}

func TestThoseThatWaitAreServedInOrderOfRank(t *testing.T) {
	s := serve(t, 1)
	first := s.ask(t, "x-priority: low")
	<-s.arrived
	var waiting []chan *http.Response
	for _, header := range [][]string{{"x-priority: low", "x-envoy-attempt-count: 2"}, {"x-priority: low"}, {"x-priority: normal"}, {"x-priority: critical"}} {
		waiting = append(waiting, s.ask(t, header...))
		for end := time.Now().Add(5 * time.Second); s.underway(t) < uint64(1+len(waiting)) && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond) // a real process reads them
		}
	}
	s.answers <- struct{}{}
	<-first
	for i, next := range slices.Backward(waiting) {
		<-s.arrived
		s.answers <- struct{}{}
		select {
		case <-next:
		case <-time.After(5 * time.Second):
			t.Fatalf("request %d of %d was not the next", i, len(waiting))
		}
	}
}

// underway returns how many requests of all classes are under way.
func (s *service) underway(t *testing.T) (sum uint64) {
	t.Helper()
	for _, c := range s.counts(t) {
		sum += c.Underway
	}
	return sum
}

func TestARefusedCallOfGRPCIsRefusedInItsTerms(t *testing.T) {
	s := serve(t, 1)
	s.fill(t, 2)
	s.set(t, s.classes.SetBounds([]int{1, 1, 1, 1, 1, 1}, later())...)
	r := <-s.ask(t, "content-type: application/grpc+proto")
	after, err := strconv.Atoi(r.Header.Get("Grpc-Retry-Pushback-Ms"))
	if r.StatusCode != http.StatusOK || r.Header.Get("Grpc-Status") != "8" || r.Header.Get("Content-Type") != "application/grpc" || err != nil || after < 500 || after > 1500 {
		t.Errorf("%+v", r)
	}
}

// Nobody has to end them: whoever was killed, HAProxy looks at its clock.
func TestBoundsThatNobodyRenewsEnd(t *testing.T) {
	s := serve(t, 1)
	s.fill(t, 2)
	s.set(t, s.classes.SetBounds([]int{1, 1, 1, 1, 1, 1}, time.Now().Unix())...)
	select {
	case r := <-s.ask(t, "x-priority: low"):
		t.Errorf("%+v", r)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestAReloadHasTheMapOfTheFileAndCountsAnew(t *testing.T) {
	s := serve(t, 1)
	s.fill(t, 2)
	s.set(t, s.classes.SetBounds([]int{1, 1, 1, 1, 1, 1}, later())...)
	s.Reload(t)
	_, rest := s.look(t, s.classes.Show())
	read, err := haproxy.ParseMap(rest)
	if err != nil || read[haproxy.UntilKey] != 0 || read[haproxy.RateKey] != haproxy.None || len(s.counts(t)) != 0 {
		t.Errorf("%v, %v, %v", read, err, s.counts(t))
	}
	for rank, v := range s.classes.Bounds(read) {
		if v != haproxy.None {
			t.Errorf("rank %d has %d", rank, v)
		}
	}
}

func TestARateAdmitsThatManyInASecondAndTheMostImportantLast(t *testing.T) {
	s := serve(t, 1000)
	go func() {
		for {
			select {
			case s.answers <- struct{}{}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	s.set(t, s.classes.SetRate("", 20, later())...)
	admitted := map[string]int{}
	for _, class := range []string{"low", "critical"} {
		for range 30 {
			if r := <-s.ask(t, "x-priority: "+class); r.StatusCode == http.StatusOK {
				admitted[class]++
			}
		}
	}
	if n := admitted["low"] + admitted["critical"]; admitted["low"] < 17 || admitted["critical"] < 1 || n > 40 {
		t.Errorf("%v of 60 requests at a rate of 20, within about a second", admitted)
	}
}

func TestWhatWaitsTooLongIsCountedAsNotServed(t *testing.T) {
	s := serve(t, 1)
	s.fill(t, 1)
	r := <-s.ask(t, "x-priority: low") // the printed time-out is one second here
	if r.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("%+v", r)
	}
	for end := time.Now().Add(5 * time.Second); s.counts(t)["low"].Underway > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // HAProxy ends it after its answer
	}
	if c := s.counts(t)["low"]; c.NotServed() != 1 || c.Admitted != 1 {
		t.Errorf("%+v", c)
	}
	b, _ := s.look(t)
	if b.Own == nil || b.Own.NoConnection != 1 || b.Servers[0].NoConnection != 0 {
		t.Errorf("%+v, %+v", b.Own, b.Servers)
	}
	s.answers <- struct{}{}
	for end := time.Now().Add(5 * time.Second); s.counts(t)["critical"].Underway > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if c := s.counts(t)["critical"]; c.Answered != 1 || c.NotServed() != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsNoConfigurationOfHAProxyIsRefused(t *testing.T) {
	ok := haproxy.Classes{Backend: "b", Map: "/m", Header: "h", Names: []string{"a"}}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*haproxy.Classes){
		"backend":          func(c *haproxy.Classes) { c.Backend = "a b" },
		"relative map":     func(c *haproxy.Classes) { c.Map = "m" },
		"map with a space": func(c *haproxy.Classes) { c.Map = "/a b" },
		"map with a comma": func(c *haproxy.Classes) { c.Map = "/a,b" },
		"header":           func(c *haproxy.Classes) { c.Header = "a)b" },
		"no header":        func(c *haproxy.Classes) { c.Header = "" },
		"no classes":       func(c *haproxy.Classes) { c.Names = nil },
		"class twice":      func(c *haproxy.Classes) { c.Names = []string{"a", "a"} },
		"class is a key":   func(c *haproxy.Classes) { c.Names = []string{"until"} },
		"retry of another": func(c *haproxy.Classes) { c.Names = []string{"a", "a-retry"} },
		"capital letters":  func(c *haproxy.Classes) { c.Names = []string{"A"} },
	} {
		c := ok
		if change(&c); c.Validate() == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestASocketWithoutTheLinesIsSaid(t *testing.T) {
	p := haproxytest.Start(t, "shop", haproxytest.Front+"backend shop\n  server web1 127.0.0.1:9\n")
	c := shop
	c.Map = "/none"
	for command, parse := range map[string]func(string) error{
		c.Show():      func(text string) error { _, err := haproxy.ParseMap(text); return err },
		c.ShowTable(): func(text string) error { _, err := haproxy.ParseTable(text); return err },
	} {
		b, err := haproxy.Look(context.Background(), p.Socket, "shop", command)
		if err != nil {
			t.Fatal(err)
		}
		if err := parse(b.Rest); err == nil || !strings.Contains(err.Error(), "trimtab init haproxy") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("Name: HAProxy\nPid: 3\nStart_time_sec: 4\nnode: vm\n", "# pxname,svname,slim,sid,scur\nshop,web1,3,1,2\n", "\n")
	f.Add("# table: t, type: string, size:64, used:1\n0x1: key=a use=1 exp=0 gpc0=1 gpc1=2 gpc1_rate(1000)=3 http_req_cnt=4\n", "No such proxy.\n", "Permission denied\n")
	f.Add("0x1 a 5\n0x2 b x\n", "# pxname,svname,slim,sid\nshop,\"we", "No such server.\n")
	f.Fuzz(func(t *testing.T, text, stat, set string) {
		_, _ = haproxy.ParseInfo(text)
		_ = haproxy.Set(set)
		if all, err := haproxy.ParseTable(text); err == nil {
			for _, c := range all {
				if c.NotServed() > c.Requests {
					t.Errorf("%+v", c)
				}
			}
		}
		_, _ = haproxy.ParseMap(text)
		own, all, err := haproxy.ParseStat(stat, "shop")
		if err != nil && (all != nil || own != nil) {
			t.Errorf("%v and %+v", err, all)
		}
		for _, s := range all {
			if !haproxy.Plain(s.Name) || s.Limit.Validate() != nil || s.Limit.Value == 0 && !s.Limit.Unlimited {
				t.Errorf("%+v", s)
			}
		}
	})
}
