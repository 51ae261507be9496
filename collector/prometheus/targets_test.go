package prometheus

import (
	"math"
	"strings"
	"testing"
	"time"
)

// These tests play a Prometheus that scrapes every 15 s, asked every 5 s for
// sum(rate(requests_total[1m])): samples, staleness markers, up, the lookback of 5 min
// and the formula of rate() are those of Prometheus 2.42.
const (
	scrapeEvery = 15.0
	asked       = 5.0
	window      = 60.0
	lookback    = 300.0
)

// played is one series of a counter, at seconds since the start.
type played struct {
	target
	rate func(at float64) float64 // requests per second that it serves
	// scraped is whether a scrape at that time gives a sample; from gone on, 0: never, a
	// staleness marker is the newest, until there is a sample later than back.
	scraped    func(at float64) bool
	gone, back float64
	offset     float64 // of its scrapes
	samples    []float64
	values     []float64
	total      float64
}

// play is such a server with its targets. up says of one that has the series; nil: none has.
type play struct {
	series []*played
	up     func(id target, at float64) (works, has bool)
	// quiet tells that no new up comes: no scrape, or none that arrives.
	quiet func(id target, at float64) bool
	seen  map[string]float64 // when up last came
	until float64
}

// at plays one second after the other.
func (p *play) second(at float64) {
	for _, s := range p.series {
		s.total += s.rate(at)
		rest := at - s.offset
		if rest < 0 || int(rest)%int(scrapeEvery) != 0 {
			continue
		}
		if s.scraped(at) {
			s.samples, s.values = append(s.samples, at), append(s.values, s.total)
		}
		if p.quiet == nil || !p.quiet(s.target, at) {
			p.seen[s.instance] = at
		}
	}
}

func (p *play) found(at float64) map[target]ages {
	found := map[target]ages{}
	for _, s := range p.series {
		if len(s.samples) == 0 || s.gone > 0 && at >= s.gone && (s.back == 0 || s.samples[len(s.samples)-1] < s.back) {
			continue
		}
		age := at - s.samples[len(s.samples)-1]
		if age >= lookback {
			continue
		}
		d := time.Duration(age * float64(time.Second))
		a, ok := found[s.target]
		if !ok {
			a = ages{d, d}
		}
		found[s.target] = ages{min(a.newest, d), max(a.oldest, d)}
	}
	return found
}

func (p *play) health(at float64) health {
	up := health{}
	for _, s := range p.series {
		if p.up == nil {
			continue
		}
		if works, has := p.up(s.target, at); has {
			of := up[[2]string{s.job, s.instance}]
			of.works, of.at = works, p.time(p.seen[s.instance])
			up[[2]string{s.job, s.instance}] = of
		}
	}
	return up
}

// sum is sum(rate(requests_total[1m])), as promql/functions.go extrapolates.
func (p *play) sum(at float64) (sum float64) {
	for _, s := range p.series {
		first := 0
		for first < len(s.samples) && s.samples[first] <= at-window {
			first++
		}
		n := len(s.samples) - first
		if n < 2 {
			continue
		}
		from, to := s.samples[first], s.samples[len(s.samples)-1]
		increase, between := s.values[len(s.values)-1]-s.values[first], (to-from)/float64(n-1)
		start, end := from-(at-window), at-to
		if start >= 1.1*between {
			start = between / 2
		}
		if increase > 0 {
			start = min(start, (to-from)*s.values[first]/increase)
		}
		if end >= 1.1*between {
			end = between / 2
		}
		sum += increase * (to - from + start + end) / (to - from) / window
	}
	return sum
}

// answer is what came of one question.
type answer struct {
	at, value float64
	missing   string
}

func (p *play) time(at float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(at * float64(time.Second)))
}

// run asks until p.until, as samples does.
func (p *play) run() (all []answer) {
	s := state{window: window * time.Second}
	p.seen = map[string]float64{}
	for at := 0.0; at < p.until; at++ {
		p.second(at)
		if int(at)%int(asked) != 3 || at < 90 {
			continue
		}
		now := p.time(at)
		found, sum := p.found(at), p.sum(at)
		var err error
		if len(found) == 0 {
			err = &fault{kindGone, "gone"}
		}
		var st targetState
		if err == nil {
			var up health
			away := s.targets.away(found)
			if s.targets.unsure(found) {
				up = p.health(at)
			}
			s.targets.enter(now, found, up, away)
			st = s.targets.stand(now, s.window)
		}
		if err = s.covered(err, now, st); err == nil {
			err = s.targets.partial(&st, sum, s.window)
		}
		a := answer{at: at, value: sum}
		if err != nil {
			a.missing = err.Error()
		}
		all = append(all, a)
	}
	return all
}

// judge looks at the answers of [from, to): how many are missing, and the least of those
// that count.
func judge(t *testing.T, all []answer, from, to float64) (missing int, least float64, why string) {
	t.Helper()
	least = 1e9
	for _, a := range all {
		if a.at < from || a.at >= to {
			continue
		}
		if a.missing != "" {
			missing++
			why = a.missing
		} else {
			least = min(least, a.value)
		}
		if testing.Verbose() {
			t.Logf("%4.0f s: %5.1f/s %s", a.at, a.value, a.missing)
		}
	}
	return missing, least, why
}

func always(float64) bool { return true }

// serves gives a rate within [from, to), else none.
func serves(rate, from, to float64) func(float64) float64 {
	return func(at float64) float64 {
		if at >= from && at < to {
			return rate
		}
		return 0
	}
}

func within(from, to float64) func(float64) bool {
	return func(at float64) bool { return at >= from && at < to }
}

// pod is a target with one series.
func pod(name string, offset float64, rate func(float64) float64, scraped func(float64) bool) *played {
	return &played{target: target{job: "shop", instance: name}, offset: offset, rate: rate, scraped: scraped}
}

const forever = 1e9

// healthy is up of targets that are there within a time and always answer.
func healthy(there map[string][2]float64) func(target, float64) (bool, bool) {
	return func(id target, at float64) (works, has bool) {
		in, known := there[id.instance]
		return true, !known || at >= in[0] && at < in[1]
	}
}

// Prometheus marks the series of a target that it no longer scrapes as stale after two
// more intervals and a tenth.
func TestATargetThatGoesInGoodOrderIsNoGap(t *testing.T) {
	for _, c := range []struct {
		name string
		load float64
		pods []*played
	}{
		{"one of two pods is replaced", 40, []*played{
			pod("a", 3, serves(20, 0, forever), always),
			pod("b", 11, serves(20, 0, 240), within(0, 240)),
			pod("c", 7, serves(20, 240, forever), within(225, forever))}},
		{"the only pod is replaced", 20, []*played{
			pod("b", 11, serves(20, 0, 240), within(0, 240)),
			pod("c", 7, serves(20, 240, forever), within(225, forever))}},
		{"all of three pods, one after the other", 60, []*played{
			pod("a", 3, serves(20, 0, 240), within(0, 240)), pod("d", 5, serves(20, 240, forever), within(225, forever)),
			pod("b", 11, serves(20, 0, 270), within(0, 270)), pod("e", 2, serves(20, 270, forever), within(255, forever)),
			pod("c", 7, serves(20, 0, 300), within(0, 300)), pod("f", 9, serves(20, 300, forever), within(285, forever))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &play{series: c.pods, until: 500}
			there := map[string][2]float64{}
			for _, s := range c.pods {
				last := 0.0
				for at := s.offset; at < p.until; at += scrapeEvery {
					if s.scraped(at) {
						last = at
					}
				}
				if last+scrapeEvery < p.until {
					s.gone = last + 3.1*scrapeEvery
					there[s.instance] = [2]float64{0, s.gone}
				}
			}
			p.up = healthy(there)
			p.quiet = func(id target, at float64) bool { in, ok := there[id.instance]; return ok && at > in[1]-3*scrapeEvery }
			missing, least, why := judge(t, p.run(), 180, 500)
			if missing > 1 {
				t.Errorf("%d of 64 answers are missing: %s", missing, why)
			}
			if least < 0.7*c.load { // while the rates of the old and the new fade into each other
				t.Errorf("the load reads %.1f/s, want about %.0f", least, c.load)
			}
		})
	}
}

// A container that ended leaves series with times of their own, which get no marker: they
// are found for 5 minutes. The target that had them is scraped all the time.
func TestASeriesThatIsNoLongerScrapedHoldsNobody(t *testing.T) {
	all := []*played{
		pod("kubelet", 3, serves(20, 0, forever), always),
		pod("kubelet", 3, serves(20, 0, 240), within(0, 240)),
		pod("kubelet", 3, serves(20, 240, forever), within(240, forever)),
	}
	p := &play{series: all, up: healthy(nil), until: 700}
	missing, least, why := judge(t, p.run(), 180, 700)
	if missing > 0 || least < 0.75*40 {
		t.Errorf("%d answers are missing (%s), the least is %.1f/s", missing, why, least)
	}
}

// The same of a target that was removed, and of one that pushed and never had up.
func TestAReplacedTargetWithoutMarkersHoldsNobody(t *testing.T) {
	for name, up := range map[string]func(target, float64) (bool, bool){
		"scraped": healthy(map[string][2]float64{"b": {0, 282}}), "pushed": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{up: up, quiet: func(id target, at float64) bool { return id.instance == "b" && at > 240 }, until: 900, series: []*played{
				pod("a", 3, serves(20, 0, forever), always),
				pod("b", 11, serves(20, 0, 240), within(0, 240)),
				pod("c", 7, serves(20, 240, forever), within(225, forever))}}
			missing, least, why := judge(t, p.run(), 180, 900)
			if missing > 3 || least < 0.75*40 {
				t.Errorf("%d answers are missing (%s), the least is %.1f/s", missing, why, least)
			}
		})
	}
}

// Half of the load is behind a target that is cut off from 240 to 900 s and serves on: a
// scrape that fails, a federation or remote write whose link is away.
func TestALoadOfWhichAPartIsCutOffIsMissingAndNeverAFall(t *testing.T) {
	for _, c := range []struct {
		name string
		up   func(target, float64) (bool, bool)
		gone float64
		says string
		// least is what may be read at most below the load of all: of a target that looks
		// for three intervals like one that was just removed, up to half of its share.
		least float64
	}{
		{"the scrape fails", func(id target, at float64) (bool, bool) { return id.instance != "b" || at < 241 || at >= 911, true }, 241, "up is 0", alike * 40},
		{"the scrape fails, and up came later than the samples", func(id target, at float64) (bool, bool) {
			return id.instance != "b" || at < 241 || at >= 911, at > 150
		}, 241, "up is 0", alike * 40},
		{"remote write is cut", func(id target, at float64) (bool, bool) {
			return true, id.instance != "b" || at < 236+lookback || at >= 900
		}, 0, "told nothing new", 30},
		{"a federation, or pushed", nil, 0, "told nothing new", alike * 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := pod("b", 11, serves(20, 0, forever), func(at float64) bool { return at < 240 || at >= 900 })
			b.gone, b.back = c.gone, 900
			p := &play{up: c.up, quiet: func(id target, at float64) bool { return c.gone == 0 && !b.scraped(at) && id.instance == "b" }, until: 1200, series: []*played{pod("a", 3, serves(20, 0, forever), always), b}}
			all := p.run()
			missing, least, why := judge(t, all, 180, 900)
			if least < c.least {
				t.Errorf("the load reads %.1f/s while 20 of 40/s are cut off", least)
			}
			if missing < 100 || !strings.Contains(why, c.says) || !strings.Contains(why, `instance "b"`) {
				t.Errorf("%d answers are missing: %s", missing, why)
			}
			if _, least, _ := judge(t, all, 900, 1000); least < alike*40-1 {
				t.Errorf("the load reads %.1f/s while the window reaches into the cut", least)
			}
			if missing, _, why := judge(t, all, 1000, 1200); missing > 0 {
				t.Errorf("%d answers are missing after the link is back: %s", missing, why)
			}
		})
	}
}

// A pod crashed: the scrape fails, and the other takes its requests.
func TestTheOthersOfATargetThatIsDownAreAllOnceTheyServeItsLoad(t *testing.T) {
	p := &play{until: 700, up: func(id target, at float64) (bool, bool) { return id.instance != "b" || at < 240, true },
		series: []*played{
			pod("a", 3, func(at float64) float64 {
				if at < 240 {
					return 20
				}
				return 38
			}, always),
			pod("b", 11, serves(20, 0, 240), within(0, 240)),
		}}
	p.series[1].gone = 241
	all := p.run()
	if missing, _, why := judge(t, all, 330, 700); missing > 0 {
		t.Errorf("%d answers are missing: %s", missing, why)
	}
}

// Pods that are taken away because less is asked of them leave no doubt.
func TestFewerTargetsWithLessLoadAreNoPart(t *testing.T) {
	p := &play{until: 600, series: []*played{
		pod("a", 3, serves(15, 0, forever), always), pod("b", 11, serves(15, 0, 240), within(0, 240)), pod("c", 7, serves(15, 0, 240), within(0, 240))},
		up:    healthy(map[string][2]float64{"b": {0, 281}, "c": {0, 277}}),
		quiet: func(id target, at float64) bool { return id.instance != "a" && at > 240 }}
	p.series[1].gone, p.series[2].gone = 281, 277
	if missing, _, why := judge(t, p.run(), 290, 600); missing > 0 {
		t.Errorf("%d answers are missing: %s", missing, why)
	}
}

// More targets than are asked for at once are not taken for removed.
func TestManyTargetsThatAreDownAreAllMissed(t *testing.T) {
	down := func(id target, at float64) (bool, bool) { return id.instance[0] == 'a' || at < 241, true }
	p := &play{up: down, until: 500}
	for i := range 4 * maxAway {
		s := pod(string("ab"[i%2])+time.Duration(i).String(), float64(i%15), serves(1, 0, forever), always)
		if i%2 == 1 {
			s.scraped, s.gone = within(0, 240), 241
		}
		p.series = append(p.series, s)
	}
	missing, least, why := judge(t, p.run(), 250, 500)
	if missing < 40 || least < alike*4*maxAway {
		t.Errorf("%d answers are missing (%s), the least is %.1f/s of %d", missing, why, least, 4*maxAway)
	}
}

// Instances come and go for ever, and each leaves a doubt behind.
func TestTargetsThatCameAndWentAreForgotten(t *testing.T) {
	var all targets
	now := time.Unix(1_700_000_000, 0)
	for i := range 3 * maxTargets {
		found := map[target]ages{{instance: strings.Repeat("x", i%7) + time.Duration(i).String()}: {}}
		all.enter(now.Add(time.Duration(i)*time.Second), found, health{}, nil)
	}
	if len(all.of) > 2*maxTargets+1 {
		t.Errorf("%d targets are kept", len(all.of))
	}
}

// VictoriaMetrics shows new samples in bursts and answers as of the last whole second: what
// is new every four seconds is in time.
func TestSamplesThatAreSeenInBurstsAreInTime(t *testing.T) {
	const begin = 1_700_000_000.0
	at := func(s float64) time.Time { return point{at: begin + s}.mustTime(t) }
	var all targets
	id := target{job: "shop", instance: "a"}
	for i := range 200 {
		now := float64(i) / 2
		seen := math.Floor((now-0.5)/4) * 4 // the latest burst; samples are a third of a second older
		asOf := math.Floor(now)
		all.enter(at(asOf), map[target]ages{id: {time.Duration((asOf - seen + 0.317) * 1e9), time.Duration((asOf - seen + 0.317) * 1e9)}}, health{{"shop", "a"}: {true, at(seen)}}, nil)
		if st := all.stand(at(asOf), 10*time.Second); i > 40 && len(st.doubted) > 0 {
			t.Fatalf("%v s: in doubt, with new samples every %v and at age %v", now, all.of[id].every(), all.of[id].age())
		}
	}
	if every := all.of[id].every(); every != 4*time.Second {
		t.Errorf("new samples every %v, want 4s", every)
	}
}

func (p point) mustTime(t *testing.T) time.Time {
	t.Helper()
	at, ok := p.time()
	if !ok {
		t.Fatalf("%v is no time", p.at)
	}
	return at
}

// The ages are as of when the server says that it evaluated the query.
func TestAgesAreAsOfTheServersTime(t *testing.T) {
	read := func(at string) (time.Time, error) {
		r, err := readReply(200, "application/json", []byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"shop","instance":"a","trimtab":"newest 0"},"value":[`+at+`,"0.25"]}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		found, asOf, err := r.ages()
		if err == nil && found[target{job: "shop", instance: "a"}].newest != 250*time.Millisecond {
			t.Errorf("%v", found)
		}
		return asOf, err
	}
	if asOf, err := read("1700000000.123"); err != nil || !asOf.Equal(time.UnixMilli(1_700_000_000_123)) {
		t.Errorf("%v %v", asOf, err)
	}
	for _, at := range []string{"-1", "0", "1e300"} {
		if asOf, err := read(at); err == nil {
			t.Errorf("an answer as of %s: %v", at, asOf)
		}
	}
}

// VictoriaMetrics finds a series for some scrape intervals where it is named alone, and for
// minutes as an argument of timestamp().
func TestUpIsAskedForOfAllThatTheAgesAreOf(t *testing.T) {
	const selector = `requests_total{job="shop"}`
	ages, up := ageQuery([]string{selector}, byTarget), upQuery([]string{selector}, nil)
	for _, query := range []string{ages, up} {
		if n, all := strings.Count(query, "timestamp("+selector+")"), strings.Count(query, selector); n == 0 || n != all {
			t.Errorf("%d of %d times within timestamp(): %s", n, all, query)
		}
	}
}
