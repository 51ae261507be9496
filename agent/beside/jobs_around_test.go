package beside

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/network"
	"github.com/trimtab/trimtab/collector/rapl"
)

// clock is a ceiling of the clock that is a plain file of a group: cpufreq has its own
// tests against the kernel's rules, and no test machine has it.
type clock struct{ file string }

func (c clock) String() string              { return "clock " + c.file }
func (c clock) Resource() string            { return trimtab.Frequency }
func (c clock) Probe(context.Context) error { _, err := os.Stat(c.file); return err }

func (c clock) MayWrite(context.Context) error          { return nil }
func (c clock) Nearest(a trimtab.Amount) trimtab.Amount { return a }
func (c clock) Undo() []byte                            { return []byte(c.file) }
func (c clock) Traits() actuator.Traits                 { return actuator.Traits{} }
func (c clock) Close() error                            { return nil }
func (c clock) Write(_ context.Context, a trimtab.Amount) error {
	text := "max"
	if !a.Unlimited {
		text = strconv.FormatFloat(a.Value, 'g', -1, 64)
	}
	return os.WriteFile(c.file, []byte(text), 0o644)
}

func (c clock) Read(context.Context) (trimtab.Amount, error) {
	b, err := os.ReadFile(c.file)
	if err != nil || string(b) == "max" {
		return trimtab.Unlimited(), err
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return trimtab.Units(v), err
}

func clockKind() actuator.Kind {
	return actuator.Kind{Name: "clock", Resources: []string{trimtab.Frequency}, Find: actuator.FindGroups,
		Probe: func(at actuator.Location) (actuator.Location, error) { return at, nil },
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return clock{filepath.Join(at.Root, at.Path, "clock")}, nil
		},
		Reopen: func(undo []byte) (actuator.Knob, error) {
			if !strings.HasSuffix(string(undo), "/clock") {
				return nil, trimtab.ErrUnsupported
			}
			return clock{string(undo)}, nil
		}}
}

// put writes a file of a tree.
func put(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// powered is a host with one package of 100 W, and two policies of two CPUs: the
// service has the first.
type powered struct {
	*jobWorld
	dir string
}

func newPowered(t *testing.T) *powered {
	p := &powered{jobWorld: &jobWorld{t: t, root: t.TempDir(), now: time.Now()}, dir: t.TempDir()}
	p.group("web")
	p.group("batch/0")
	put(t, p.root, "web/cpuset.cpus.effective", "0-1\n")
	put(t, p.root, "batch/0/clock", "max")
	for name, text := range map[string]string{
		"rapl/intel-rapl:0/name": "package-0\n", "rapl/intel-rapl:0/energy_uj": "0\n", "rapl/intel-rapl:0/max_energy_range_uj": "262143328850000\n",
		"rapl/intel-rapl:0/constraint_0_name": "long_term\n", "rapl/intel-rapl:0/constraint_0_power_limit_uw": "100000000\n",
		"cpufreq/policy0/affected_cpus": "0 1\n", "cpufreq/policy0/cpuinfo_max_freq": "3000000\n", "cpufreq/policy0/base_frequency": "2400000\n",
		"cpufreq/policy2/affected_cpus": "2 3\n", "cpufreq/policy2/cpuinfo_max_freq": "3000000\n", "cpufreq/policy2/base_frequency": "2400000\n", "cpufreq/policy2/scaling_cur_freq": "1000000\n",
	} {
		put(t, p.dir, name, text)
	}
	p.clock(2800)
	p.open(fmt.Sprintf(strings.Replace(jobFile, "beside:", "measure: {power: true}\nbeside:", 1), p.root, t.TempDir(), "act", filepath.Join(p.root, "progress-*")),
		append([]actuator.Kind{clockKind()}, kinds.All()...), machine{power: rapl.Reader{Zones: filepath.Join(p.dir, "rapl"), Policies: filepath.Join(p.dir, "cpufreq")}})
	return p
}

// clock sets what the cores of the service run at, in MHz.
func (p *powered) clock(mhz int) {
	put(p.t, p.dir, "cpufreq/policy0/scaling_cur_freq", fmt.Sprintf("%d000\n", mhz))
}

// draw lets periods go by in which the package draws so many W. The energy follows the
// real clock, as the reader does, so it is scaled to what was read.
func (p *powered) draw(periods int, watts float64) {
	for range periods {
		if b := p.around.before; b != nil {
			p.around.before.power.At -= 100 * time.Millisecond // at least so long ago
		}
		p.pass(1, 20, 0.4)
		p.around.measuring.running.Wait()
		p.around.mu.Lock()
		if s := p.around.newest; s != nil && s.Power != nil {
			s.Power.Draws = watts // what a real counter would say of a real time
		}
		p.around.mu.Unlock()
	}
}

func (p *powered) ceiling() string {
	b, err := os.ReadFile(filepath.Join(p.root, "batch/0/clock"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func TestJobsSlowDownWhileThePackageIsHotAndTheServiceSlow(t *testing.T) {
	p := newPowered(t)
	p.draw(20, 50)
	before := p.ceiling()
	if before != "max" && before != "3000" {
		t.Fatalf("the ceiling is %s while the package is cool", before)
	}
	p.draw(5, 95)
	if got := p.ceiling(); got != before {
		t.Errorf("the ceiling is %s while the service runs at 2800 of 2400 MHz", got)
	}
	p.clock(2000)
	p.draw(12, 95)
	if c := p.Colocation(); c.Power == nil || c.Power.Draws != 95 || c.Power.TDP != 100 || c.Services[0].Clock != 2000 || c.Services[0].LeastClock != 2400 {
		t.Errorf("shown: %+v %+v", c.Power, c.Services)
	}
	low, err := strconv.ParseFloat(p.ceiling(), 64)
	if err != nil || low > 2500 || low < 1500 {
		t.Fatalf("the ceiling is %s while the package is hot and the service slow", p.ceiling())
	}
	p.clock(2800)
	p.draw(40, 50)
	if high, _ := strconv.ParseFloat(p.ceiling(), 64); high < low+300 {
		t.Errorf("the ceiling is %v after it was cool, before %v", high, low)
	}
}

func TestPowerAndClocksAreMeasured(t *testing.T) {
	p := newPowered(t)
	first := p.around.look(t.Context(), p.now)
	if first.Power != nil {
		t.Errorf("power of one reading: %+v", first.Power)
	}
	if f := first.Frequencies["web"]; f.Now != 2800 || f.Least != 2400 {
		t.Errorf("%+v", first.Frequencies)
	}
	p.around.before.power.At -= time.Hour
	put(t, p.dir, "rapl/intel-rapl:0/energy_uj", "324000000000\n") // 90 W for an hour
	if got := p.around.look(t.Context(), p.now).Power; got == nil || got.TDP != 100 || got.Draws < 89.9 || got.Draws > 90 {
		t.Errorf("%+v", got)
	}
	put(t, p.dir, "rapl/intel-rapl:0/energy_uj", "no\n")
	if got := p.around.look(t.Context(), p.now); got.Power != nil || got.Link != nil || got.Capacity != nil {
		t.Errorf("%+v", got)
	}
}

func TestAHostWithoutAClockToTurnSaysSoAndTurnsTheRest(t *testing.T) {
	w := &jobWorld{t: t, root: t.TempDir(), now: time.Now()}
	w.group("web")
	w.group("batch/0")
	none := filepath.Join(t.TempDir(), "none")
	w.open(fmt.Sprintf(strings.Replace(jobFile, "beside:", "measure: {power: true, links: [none0]}\nbeside:", 1), w.root, t.TempDir(), "act", filepath.Join(w.root, "progress-*")),
		kinds.All(), machine{power: rapl.Reader{Zones: none, Policies: none}})
	for range 20 {
		w.pass(1, 20, 0.4)
		w.around.measuring.running.Wait()
	}
	c := w.Colocation()
	if c.Missing[trimtab.Frequency] == "" || c.Running != 1 || strings.Contains(c.Jobs[0].Problem, trimtab.Frequency) {
		t.Errorf("%+v", c)
	}
}

// A real interface in a network namespace of the job, and what a real interface of the
// host sent, with a speed of 100 Mbit/s beside it.
func TestWhatServicesSendIsTakenFromWhatJobsMaySend(t *testing.T) {
	name := fmt.Sprintf("tt%d", os.Getpid()%100000)
	ns := "trimtab-job-" + name
	for _, command := range []string{
		"ip netns add " + ns, "ip link add " + name + "u type veth peer name " + name + "p", "ip addr add 10.254.77.1/30 dev " + name + "u", "ip link set " + name + "u addrgenmode none", "ip link set " + name + "u up", "ip link set " + name + "p up",
		"ip link add " + name + "h type veth peer name eth0 netns " + ns, "ip link set " + name + "h up", "ip -n " + ns + " addr add 10.254.78.2/30 dev eth0", "ip -n " + ns + " link set eth0 up",
		"ip neigh add 10.254.77.2 lladdr 02:00:00:00:00:01 dev " + name + "u", "ip -n " + ns + " neigh add 10.254.78.1 lladdr 02:00:00:00:00:02 dev eth0",
	} {
		args := strings.Fields(command)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("not tried: interfaces cannot be made here: %s: %v: %s", command, err, out)
		}
		if strings.HasPrefix(command, "ip netns add") {
			t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		}
		if strings.HasPrefix(command, "ip link add "+name+"u") {
			t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name+"u").Run() })
		}
	}
	links := t.TempDir()
	put(t, links, "up/speed", "100\n")
	if err := os.MkdirAll(filepath.Join(links, "up/statistics"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/sys/class/net/"+name+"u/statistics/tx_bytes", filepath.Join(links, "up/statistics/tx_bytes")); err != nil {
		t.Fatal(err)
	}
	w := &jobWorld{t: t, root: t.TempDir(), now: time.Now()}
	w.group("web")
	w.group("batch/0")
	file := strings.Replace(jobFile, "beside:", "measure: {links: [up]}\nbeside:", 1)
	file = strings.Replace(file, "{cgroup: batch/*}", "{cgroup: batch/0, interface: {name: eth0, namespace: "+ns+"}}", 1)
	file = strings.Replace(file, ", progress: {file: %s}", "", 1)
	w.open(fmt.Sprintf(file, w.root, t.TempDir(), "act"), kinds.All(), machine{links: links})
	pass := func(periods int) {
		for range periods {
			w.pass(1, 20, 0.4)
			w.around.measuring.running.Wait()
		}
	}
	// rate is what the job may send, in Mbit/s. The kernel sends a little by itself.
	rate := func() float64 {
		out, err := exec.Command("tc", "-n", ns, "qdisc", "show", "dev", "eth0").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, after, _ := strings.Cut(string(out), "rate ")
		value, _, _ := strings.Cut(after, " ")
		for unit, scale := range map[string]float64{"Gbit": 1000, "Mbit": 1, "Kbit": 1e-3, "bit": 1e-6} {
			if v, err := strconv.ParseFloat(strings.TrimSuffix(value, unit), 64); err == nil && strings.HasSuffix(value, unit) {
				return v * scale
			}
		}
		t.Fatalf("no rate in %s", out)
		return 0
	}
	pass(20)
	if got := rate(); got < 80 || got > 100 {
		t.Fatalf("alone a job may send %v Mbit/s, want the link's 100: %+v", got, w.Colocation().Last)
	}
	conn, err := net.Dial("udp", "10.254.77.2:9")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	least := 100.0
	for range 10 {
		for range 3000 {
			_, _ = conn.Write(make([]byte, 1400)) // 4 MB at once: more than the link has
		}
		pass(1)
		least = min(least, rate())
	}
	if l := w.Colocation().Link; l == nil || l.Bandwidth != 12.5e6 {
		t.Errorf("%+v", l)
	}
	if least > 60 {
		t.Errorf("while a service sends, a job may send %v Mbit/s", least)
	}
	pass(100)
	if got := rate(); got < 80 {
		t.Errorf("after it, a job may send %v Mbit/s", got)
	}
	// What jobs send is not taken from what they may send.
	a := w.around
	a.look(t.Context(), w.now)
	sent := func() (n uint64) {
		for _, v := range network.Sent(t.Context(), a.senders[0]) {
			n += v
		}
		return n
	}
	was := sent()
	if out, err := exec.Command("ip", "netns", "exec", ns, "bash", "-c", "head -c 100000 /dev/zero > /dev/udp/10.254.78.1/9").CombinedOutput(); err != nil {
		t.Skipf("not tried: %v: %s", err, out)
	}
	if err := os.Remove(filepath.Join(links, "up/statistics/tx_bytes")); err != nil {
		t.Fatal(err)
	}
	if sent() < was+20000 {
		t.Fatalf("the job sent %d bytes, before %d", sent(), was)
	}
	// A host that forwards would have sent so much.
	put(t, links, "up/statistics/tx_bytes", strconv.FormatUint(a.before.links["up"].Bytes+sent()-was, 10))
	if l := a.look(t.Context(), w.now).Link; l == nil || l.Used != 0 {
		t.Errorf("jobs sent all that was sent: %+v", l)
	}
}

// An idle service tells no latency, since nobody asks it anything; only the kernel can say that it
// is idle.
func TestAServiceIsIdleWhoseCountersSaySo(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	counters := func(used, waited int) {
		put(t, w.root, "web/cpu.stat", fmt.Sprintf("usage_usec %d\n", used))
		for _, of := range []string{"cpu", "memory", "io"} {
			put(t, w.root, "web/"+of+".pressure", fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", waited))
		}
	}
	for name, c := range map[string]struct {
		later func()
		idle  bool
	}{
		"nothing is used":          {func() {}, true},
		"it works":                 {func() { counters(1e9, 5) }, false},
		"it waits":                 {func() { counters(5, 1e9) }, false},
		"a counter went backwards": {func() { counters(4, 4) }, false},
		"one is missing":           {func() { _ = os.Remove(filepath.Join(w.root, "web", "io.pressure")) }, false},
		"the group is gone":        {func() { _ = os.RemoveAll(filepath.Join(w.root, "web")) }, false},
	} {
		w.group("web")
		counters(5, 5)
		a := aroundOf(w.cfg, "h", w.knobs)
		first := a.look(t.Context(), w.now)
		a.before.at -= time.Second
		c.later()
		if second := a.look(t.Context(), w.now); len(first.Idle) > 0 || second.Idle["web"] != c.idle {
			t.Errorf("%s: idle %v, then %v", name, first.Idle, second.Idle)
		}
	}
}
