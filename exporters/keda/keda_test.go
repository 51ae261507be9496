package keda

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	reasons "github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/trial"
)

var checkout = object{"workload": "checkout", "scalerAddress": "trimtab:9601"}

// refused checks that a read fails, with code and words.
func (s *site) refused(t *testing.T, o object, code codes.Code, words string) {
	t.Helper()
	n, err := s.reads(t, o)
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), words) {
		t.Errorf("%v: %v and error %v, want %v with %q", o, n, err, code, words)
	}
}

func (s *site) advised(t *testing.T, o object, want float64) {
	t.Helper()
	if n, err := s.reads(t, o); n != want || err != nil {
		t.Errorf("%v: %v, %v; want %v", o, n, err, want)
	}
}

func TestTheValueIsTheNumberOfPodsThatTheNewestPlanWants(t *testing.T) {
	s := openSite(t)
	s.plan(1, 6, nil)
	s.advised(t, checkout, 6)
	s.plan(2, 5, nil)
	s.advised(t, checkout, 5)
	s.plan(1, 9, nil) // late
	s.advised(t, checkout, 5)
}

func TestAWorkloadThatStaysIsAdvisedWhatItHas(t *testing.T) {
	s := openSite(t)
	s.holds(4, "")
	s.plan(1, 0, nil)
	s.advised(t, checkout, 4)
}

func TestWithoutFreshAdviceTheAnswerIsAnErrorAndNeverANumber(t *testing.T) {
	s := openSite(t)
	s.refused(t, checkout, codes.Unavailable, "no plan was made yet")
	s.plan(1, 6, nil)
	s.at = s.at.Add(2*round - 1)
	s.advised(t, checkout, 6)
	s.at = s.at.Add(1)
	s.refused(t, checkout, codes.Unavailable, "out of date")
	s.plan(2, 0, nil)
	s.refused(t, checkout, codes.Unavailable, "how many pods there are is not known")
	s.holds(4, "the API server is away")
	s.refused(t, checkout, codes.Unavailable, "API server is away")
	s.holds(4, "")
	s.plan(3, 0, map[string]trimtab.Held{"checkout": {Code: reasons.HeldMissing, Text: "no spans for 40 s"}})
	s.refused(t, checkout, codes.Unavailable, "no spans for 40 s")
	s.plan(4, -0.2, nil)
	s.refused(t, checkout, codes.Unavailable, "no number of pods")
}

func TestAdviceEndsWithTheLeaseOfItsPlan(t *testing.T) {
	s := openSite(t)
	s.Observe(&trimtab.Plan{Pool: "default", Epoch: 1, Sequence: 1, Step: 1, Time: s.at, Lease: 3})
	s.holds(4, "")
	s.advised(t, checkout, 4)
	s.at = s.at.Add(3 * time.Second)
	s.refused(t, checkout, codes.Unavailable, "out of date")
}

func TestAPlanFromAClockThatIsAheadIsNoFresherThanItsArrival(t *testing.T) {
	s := openSite(t)
	s.at = s.at.Add(time.Hour)
	s.plan(1, 6, nil)
	s.at = s.at.Add(2*round - time.Hour)
	s.advised(t, checkout, 6)
	s.at = s.at.Add(time.Hour)
	s.refused(t, checkout, codes.Unavailable, "out of date")
}

func TestANewLeaderIsFollowedOnceTheAdviceOfTheOldOneIsStale(t *testing.T) {
	s := openSite(t)
	s.plan(100, 6, nil)
	s.at = s.at.Add(3 * round)
	s.plan(1, 3, nil) // the store of terms was lost
	s.advised(t, checkout, 3)
}

func TestPlansOfOtherPoolsAndAnswersToACommandAreNoAdvice(t *testing.T) {
	s := openSite(t)
	s.Observe(&trimtab.Plan{Pool: "other", Epoch: 1, Sequence: 1, Step: 1, Time: s.at, Lease: 60})
	s.Observe(&trimtab.Plan{Pool: "default", Epoch: 1, Sequence: 2, Step: 1, Time: s.at, Lease: 60, Cause: trimtab.Cause{Kind: reasons.CauseRefused}})
	s.holds(4, "")
	s.refused(t, checkout, codes.Unavailable, "no plan was made yet")
}

func TestWhatIsNotThereIsSaidByCode(t *testing.T) {
	s := openSite(t)
	s.plan(1, 6, nil)
	for _, c := range []struct {
		object object
		code   codes.Code
		words  string
	}{
		{object{"workload": "chekout"}, codes.NotFound, "chekout"},
		{object{"workload": "checkout", "pool": "other"}, codes.NotFound, `"default"`},
		{object{"workload": "checkout", "namespace": "bank"}, codes.NotFound, "namespace shop"},
		{object{"workload": "old"}, codes.FailedPrecondition, "mode off"},
		{object{"workload": "cart"}, codes.FailedPrecondition, "no bounds for replicas"},
		{object{}, codes.InvalidArgument, "names no workload"},
		{object{"workload": "checkout", "targetSize": "0"}, codes.InvalidArgument, "targetSize"},
		{object{"workload": "checkout", "targetSize": "NaN"}, codes.InvalidArgument, "targetSize"},
	} {
		s.refused(t, c.object, c.code, c.words)
	}
	if got := testutil.ToFloat64(s.metrics.Counter("trimtab_keda_answers_total", "NotFound")); got != 3 {
		t.Errorf("%v answers NotFound were counted, want 3", got)
	}
}

func TestTheTargetIsWhatOnePodStandsForAndTheValueGoesWithIt(t *testing.T) {
	s := openSite(t)
	s.plan(1, 6, nil)
	for size, want := range map[string]float64{"1": 1, "100": 100, "0.5": 0.5} {
		o := object{"workload": "checkout", "targetSize": size}
		got := message("GetMetricSpecResponse")
		if err := s.client.Invoke(t.Context(), "/externalscaler.ExternalScaler/GetMetricSpec", o.ref(), got); err != nil {
			t.Fatal(err)
		}
		spec := field(got, "metricSpecs").List().Get(0).Message()
		if name, x, n := field(spec, "metricName").String(), field(spec, "targetSizeFloat").Float(), field(spec, "targetSize").Int(); name != "trimtab-replicas" || x != want || n != int64(math.Ceil(want)) {
			t.Errorf("targetSize %s: spec %v", size, spec)
		}
		s.advised(t, o, 6*want)
	}
}

// opens opens a stream of checkout.
func (s *site) opens(ctx context.Context, t *testing.T, method string) grpc.ClientStream {
	t.Helper()
	c, err := s.client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/externalscaler.ExternalScaler/"+method)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.SendMsg(checkout.ref()), c.CloseSend()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAStreamSaysAtOnceWhatIsAndEndsCleanlyWithTheExporter(t *testing.T) {
	s := openSite(t)
	s.plan(1, 6, nil)
	active, spec := s.opens(t.Context(), t, "StreamIsActive"), s.opens(t.Context(), t, "StreamMetricSpec")
	a, m := message("IsActiveResponse"), message("GetMetricSpecResponse")
	if err := errors.Join(active.RecvMsg(a), spec.RecvMsg(m)); err != nil {
		t.Fatal(err)
	}
	if !field(a, "result").Bool() || field(m, "metricSpecs").List().Len() != 1 {
		t.Errorf("streamed %v and %v", a, m)
	}
	polled := message("GetMetricSpecResponse")
	if err := s.client.Invoke(t.Context(), "/externalscaler.ExternalScaler/GetMetricSpec", checkout.ref(), polled); err != nil || !proto.Equal(polled, m) {
		t.Errorf("polled %v, %v; streamed %v", polled, err, m)
	}
	s.plan(2, 7, nil) // changes neither: nothing more is said
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []grpc.ClientStream{active, spec} {
		if err := c.RecvMsg(a); !errors.Is(err, io.EOF) && status.Code(err) != codes.Unavailable {
			t.Errorf("the stream said %v or ended with %v", a, err)
		}
	}
}

func TestAStreamWithoutAdviceEndsWithTheReason(t *testing.T) {
	s := openSite(t)
	if err := s.opens(t.Context(), t, "StreamIsActive").RecvMsg(message("IsActiveResponse")); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
	if err := s.opens(t.Context(), t, "StreamMetricSpec").RecvMsg(message("GetMetricSpecResponse")); err != nil {
		t.Errorf("what one pod stands for needs no plan: %v", err)
	}
}

func TestAThousandStreamsOpenedAndDroppedLeaveNoGoroutineAndNoMemory(t *testing.T) {
	s := openSite(t)
	s.plan(1, 6, nil)
	s.advised(t, checkout, 6)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	open := func() (before uint64) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range maxStreams {
			if err := s.opens(ctx, t, "StreamIsActive").RecvMsg(message("IsActiveResponse")); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.opens(ctx, t, "StreamIsActive").RecvMsg(message("IsActiveResponse")); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one more stream: %v", err)
		}
		s.advised(t, checkout, 6) // questions are answered beside all streams
		return heap()
	}
	open()
	for len(s.streams) > 0 {
		time.Sleep(time.Millisecond)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	tr := trial.Start(t, 1)
	for range tr.N {
		began := time.Now()
		open()
		for len(s.streams) > 0 || runtime.NumGoroutine() > goroutines {
			time.Sleep(time.Millisecond) // the test ends by its timeout where one is left
		}
		tr.Took(time.Since(began))
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}

func TestWhoHasNoCertificateOfTheAuthorityIsNotAnswered(t *testing.T) {
	own, authorities := certificate(t)
	stranger, _ := certificate(t)
	c := Config{Listen: "127.0.0.1:0", Pool: "default", Round: round, Metrics: metric.NewSet(), Workloads: []Workload{{"checkout", trimtab.Recommend, "", true}},
		TLS: &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}}
	e, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := &site{Exporter: e, at: time.Now()}
	s.plan(1, 6, nil)
	with := func(certs ...tls.Certificate) *site {
		client := dial(t, e.Addr(), credentials.NewTLS(&tls.Config{Certificates: certs, RootCAs: authorities, MinVersion: tls.VersionTLS12}))
		return &site{Exporter: e, client: client}
	}
	with(own).advised(t, checkout, 6)
	with().refused(t, checkout, codes.Unavailable, "")
	with(stranger).refused(t, checkout, codes.Unavailable, "")
}

func TestAListenerThatOthersReachNeedsCertificatesOfClients(t *testing.T) {
	own, _ := certificate(t)
	for _, at := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		for _, with := range []*tls.Config{nil, {Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}} {
			if _, err := Open(Config{Listen: at, TLS: with, Pool: "default", Round: round, Metrics: metric.NewSet()}); !errors.Is(err, trimtab.ErrRefused) {
				t.Errorf("%s: error %v", at, err)
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	b, err := proto.Marshal(checkout.ref())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, false)
	f.Add(append([]byte{10, byte(len(b))}, b...), true)
	f.Fuzz(func(t *testing.T, b []byte, nested bool) {
		r := request{nested: nested}
		_ = r.decode(b)
		if len(r.metadata) > maxMetadata {
			t.Errorf("%d keys", len(r.metadata))
		}
		a := newAdvice(&Config{Pool: "default", Round: round, Workloads: []Workload{{"checkout", trimtab.Recommend, "", true}}}, time.Now)
		if w, target, err := a.find(&r); err == nil && (w.Name != "checkout" || !(target > 0)) {
			t.Errorf("found %v with %v", w, target)
		}
	})
}
