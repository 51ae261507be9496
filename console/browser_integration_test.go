//go:build integration

package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

// TestTheConsoleAsPeopleUseIt is the longer part of TestTheConsoleInABrowser.
func TestTheConsoleAsPeopleUseIt(t *testing.T) {
	b := openBrowser(t)
	services := shop()
	n, s := 40, newScene(t, shopConfig(services))
	s.play(services, n)
	fresh := func(s *scene) { // however long the tests before took
		n++
		s.step(services, time.Now(), n)
	}
	for _, page := range everyPage() {
		on := func(name string, test func(*testing.T, context.Context, *scene, pageOf)) {
			fresh(s)
			s.besides()
			t.Run(page.name+name, func(t *testing.T) { test(t, b, s, page) })
		}
		on(" fits 360 pixels", pageFits)
		on(" can be read in the dark", pageIsReadable)
		on(" can be walked by keyboard", pageIsWalked)
	}
	fresh(s)
	s.besides()
	t.Run("axe-core finds nothing", func(t *testing.T) { axeFindsNothing(t, b, s) })

	// The rest looks at a shop of which nothing runs beside the pool.
	n, s = 40, newScene(t, shopConfig(services))
	s.play(services, n)
	for n < 76 {
		fresh(s)
	}
	run := func(name string, test func(*testing.T, context.Context, *scene)) {
		fresh(s)
		t.Run(name, func(t *testing.T) { test(t, b, s) })
	}
	run("a slider that is moved asks again", sliderAsks)
	run("columns are sorted by a click", columnsAreSorted)
	run("a policy that is broken is noticed", policyHolds)
	run("the filter is in the address", filterWorks)
	run("the charts are drawn and told as tables", chartsAreTold)
	run("the range of time is in the address", rangeWorks)
	run("a patch is copied by keyboard", patchIsCopied)
	run("times are the reader's, with UTC on hover", timesAreLocal)
	run("what is open stays open", openStaysOpen)
	run("a plan is approved by keyboard", planIsApproved)
	run("older decisions are a page away", decisionsArePaged)
	run("what is stale is said to be stale", staleIsSaid)
	run("without scripts the pages can be read", pagesWithoutScripts)
	run("a lost connection is said and found again", connectionIsLost)
}

func pageFits(t *testing.T, b context.Context, s *scene, page pageOf) {
	p := s.open(b, t, page.path, narrow())
	p.until(page.ready)
	if got := eval[int](p, "document.documentElement.scrollWidth"); got > 360 {
		t.Errorf("the page is %d pixels wide", got)
	}
	// What is wider scrolls inside its own box.
	over := eval[[]string](p, `[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 361 && !e.closest('.scroll, pre, .skip, svg, .uplot, thead')).map(e => e.outerHTML.slice(0, 120))`)
	if len(over) > 0 {
		t.Errorf("out of the screen: %q", over)
	}
	p.screenshot(page.name+"-360", true)
}

func columnsAreSorted(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/", wide())
	p.until(isLive)
	if n := eval[int](p, `document.querySelectorAll('#workloads svg.spark path').length`); n < 6 {
		t.Errorf("%d workloads show their last hour", n)
	}
	for _, want := range []string{"ascending", "descending"} {
		if _, err := chromedp.RunResponse(p.ctx, chromedp.Click(chromedp.CSS("#workloads thead th:first-child a"))); err != nil {
			t.Fatal(err)
		}
		p.until(`document.querySelector('#workloads thead th').getAttribute('aria-sort') === '` + want + `'`)
		got := eval[[]string](p, `[...document.querySelectorAll('#workloads tbody th a')].map(e => e.textContent)`)
		if sorted := slices.IsSorted(got); sorted != (want == "ascending") {
			t.Errorf("%s: %q", want, got)
		}
	}
	// What is sorted stays so when the page is drawn again.
	p.do(chromedp.Navigate(s.url + "/fairness?sort=-shares.Workload"))
	p.until(isLive)
	drawn := eval[string](p, "document.body.dataset.time")
	s.publish(&trimtab.Estimate{Workload: "cart", Time: time.Now(), Model: "bintree/7", Reports: 4242})
	p.until("document.body.dataset.time !== '" + drawn + "'")
	if got := eval[[]string](p, `[...document.querySelectorAll('#shares tbody th a')].map(e => e.textContent)`); len(got) < 8 || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("drawn again: %q", got)
	}
}

func planIsApproved(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/plan", wide())
	p.until(isLive + ` && document.querySelector('#approve summary') !== null`)
	p.do(chromedp.Focus("#approve summary"), chromedp.KeyEvent(kb.Enter), chromedp.Focus("#approve button"), chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector('#approve [role=status]')?.textContent === 'carried out by plan 3-900'`)
}

func sliderAsks(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/what-if", wide())
	p.until(isLive)
	paying := `document.querySelectorAll('#answer .down').length`
	if n := eval[int](p, paying); n != 0 {
		t.Errorf("%d pay for no change", n)
	}
	p.do(chromedp.Focus(`input[name="capacity:cpu"]`))
	for range 5 {
		p.do(chromedp.KeyEvent(kb.ArrowLeft))
	}
	p.until(paying + " > 0 && location.search.includes('capacity')")
	if got := eval[string](p, `document.querySelector('input[name="capacity:cpu"]').value`); got >= "20" || got < "15" {
		t.Errorf("the slider stands at %s", got)
	}
	if left := eval[int](p, `new URLSearchParams(location.search).size`); left != 1 {
		t.Errorf("%d parameters for one change: %s", left, eval[string](p, "location.search"))
	}
	// The address is a permalink, and what has no answer is said.
	p = s.open(b, t, "/what-if?capacity:cpu=5.5", wide())
	p.until(isLive + ` && document.querySelector('#problem').textContent.includes('the minimums need 6')`)
}

// contrasts gives the contrast of every text that is shown with its ground, as
// WCAG 2 defines it, least first.
const contrasts = `(() => {
  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith('color(') ? [m[0]*255, m[1]*255, m[2]*255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
  const over = (f, b) => [0, 1, 2].map(i => f[i] * f[3] + b[i] * (1 - f[3])).concat(1);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => e ? over(parse(getComputedStyle(e).backgroundColor), ground(e.parentElement)) : [255, 255, 255, 1];
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest('noscript, .skip, svg')) continue;
    const g = ground(e), a = light(over(parse(getComputedStyle(e).color), g)), z = light(g);
    out.push([(Math.max(a, z) + .05) / (Math.min(a, z) + .05), walk.currentNode.data.trim().slice(0, 40)]);
  }
  return JSON.stringify(out.sort((a, b) => a[0] - b[0]).slice(0, 3));
})()`

func pageIsReadable(t *testing.T, b context.Context, s *scene, page pageOf) {
	for _, dark := range []bool{false, true} {
		l := wide()
		l.dark = dark
		p := s.open(b, t, page.path, l)
		p.until(page.ready)
		var worst [][2]any
		if err := json.Unmarshal([]byte(eval[string](p, contrasts)), &worst); err != nil || len(worst) < 3 {
			t.Fatalf("contrasts: %v, %v", worst, err)
		}
		if least, _ := worst[0][0].(float64); least < 4.5 {
			t.Errorf("dark %v: contrast under 4.5: %v", dark, worst)
		}
		lightness := eval[float64](p, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((a, v) => a + Number(v), 0) / 765`)
		if dark != (lightness < .2) || dark == (lightness > .9) {
			t.Errorf("dark %v: the ground has lightness %.2f", dark, lightness)
		}
		if dark {
			p.screenshot(page.name+"-dark", true)
		}
	}
}

func pageIsWalked(t *testing.T, b context.Context, s *scene, page pageOf) {
	p := s.open(b, t, page.path, wide())
	p.until(page.ready)
	p.do(chromedp.KeyEvent(kb.Tab))
	if got := eval[string](p, focused); !strings.Contains(got, "Skip to the content") {
		t.Errorf("first stop %q, want the skip link", got)
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("document.activeElement.id === 'main'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur(); getSelection().removeAllRanges(); document.querySelector('.skip').focus()"))
	all := eval[int](p, `[...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')].filter(e => e.checkVisibility()).length`)
	stops := map[string]int{}
	for range all + 3 {
		stop := eval[string](p, focused)
		if stop == "" {
			break
		}
		stops[stop]++
		if ring := eval[string](p, "getComputedStyle(document.activeElement).outlineStyle"); ring == "none" {
			t.Errorf("no focus to be seen at %q", stop)
		}
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	if got := eval[string](p, focused); got != "" && !strings.Contains(got, "Skip") {
		t.Errorf("a trap: after %d stops of %d at %q", len(stops), all, got)
	}
	if len(stops) < all*2/3 {
		t.Errorf("%d different stops of %d that there are", len(stops), all)
	}
	if page.name != "overview" {
		return
	}
	p.slash()
	if got := eval[string](p, focused); !strings.HasPrefix(got, "INPUT q") {
		t.Errorf("after / the focus is at %q", got)
	}
	p.do(chromedp.KeyEvent("a/b"))
	p.until("document.activeElement.value === 'a/b'")
	p.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	p.until("document.activeElement === document.body && !location.search")
}

func policyHolds(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/", wide())
	p.until(isLive)
	p.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const e = document.createElement('script'); e.textContent = 'window.pwned = 1'; document.body.append(e);
		const i = document.createElement('img'); i.src = 'http://elsewhere.invalid/x.png'; document.body.append(i);
	})()`))
	p.until("document.images[0].complete")
	if eval[bool](p, "'pwned' in window") {
		t.Error("a script inside the page ran")
	}
	// The browser tells of a problem by itself, perhaps after the next answer.
	for deadline := time.Now().Add(90 * time.Second); ; {
		p.mu.Lock()
		problems := len(p.problems)
		p.mu.Unlock()
		if problems >= 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d problems were noticed, of 2", problems)
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	p.forgive()
}

func filterWorks(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/", wide())
	p.until(isLive)
	p.slash()
	p.do(chromedp.KeyEvent("re"))
	p.until(names + ".split(' ').sort().join() === 'nightly-report,recommender'")
	p.do(chromedp.KeyEvent(" class:best-effort"))
	p.until(names + " === 'nightly-report'")
	if got := eval[string](p, "location.search"); got != "?q=re+class%3Abest-effort" {
		t.Errorf("the address has %q", got)
	}
	p.do(chromedp.Reload())
	p.until(isLive)
	if got := eval[string](p, names+" + '|' + document.querySelector('input').value"); got != "nightly-report|re class:best-effort" {
		t.Errorf("after a reload: %q", got)
	}
	for query, want := range map[string]string{"held": "payments", "mode:off": "mail", "state:bad": "search", "CHECK": "checkout"} {
		p.do(chromedp.Navigate(s.url + "/?q=" + query))
		if got := eval[string](p, names); got != want {
			t.Errorf("?q=%s shows %q, want %q", query, got, want)
		}
	}
	p.do(chromedp.Navigate(s.url + "/"))
	if _, err := chromedp.RunResponse(p.ctx, chromedp.Click(chromedp.CSS(`.chips a[href="/?q=mode%3Aoff"]`))); err != nil {
		t.Fatal(err)
	}
	p.until(names + " === 'mail' && document.querySelector('.chips a[aria-current]').textContent === 'off'")
}

func chartsAreTold(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/workloads/search?range=all", wide())
	p.until(isDrawn + " && !document.getElementById('refused').hidden")
	for _, id := range []string{"curve", "performance", "allocation", "load", "latency", "refused"} {
		drawn := eval[int](p, `(() => { const c = document.querySelector('#`+id+` canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
			const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) seen.add(d[i] >> 4 << 8 | d[i + 1] >> 4 << 4 | d[i + 2] >> 4); return seen.size; })()`)
		if drawn < 4 {
			t.Errorf("%s: %d colours are drawn", id, drawn)
		}
		p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#" + id + " summary').focus()"))
		p.do(chromedp.KeyEvent(kb.Enter))
		p.until("document.querySelectorAll('#" + id + " details tbody tr').length >= 20")
		if head := eval[string](p, "document.querySelector('#"+id+" details thead').textContent"); !strings.Contains(head, "allocation") && !strings.Contains(head, "time") {
			t.Errorf("%s: the table has heads %q", id, head)
		}
	}
	if got := eval[int](p, "document.querySelectorAll('.plot[role=img][aria-label]').length"); got != 6 {
		t.Errorf("%d charts have a name", got)
	}
}

func rangeWorks(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/workloads/checkout", wide())
	p.until(isDrawn)
	p.do(chromedp.Click(chromedp.CSS(`#ranges a[href="?range=1h"]`)))
	p.until("location.search === '?range=1h' && document.querySelector('#ranges [aria-current]')?.textContent === '1h'")
	box := eval[[]float64](p, "(() => { const r = document.querySelector('#load .u-over').getBoundingClientRect(); scrollTo(0, r.top + scrollY - 300); const n = document.querySelector('#load .u-over').getBoundingClientRect(); return [n.left, n.top, n.width]; })()")
	x, y := box[0]+box[2]*.3, box[1]+40
	p.do(chromedp.DragAndDropXY(x, y, box[0]+box[2]*.6, y))
	p.until("/from=\\d+&to=\\d+/.test(location.search) && !document.querySelector('#ranges [aria-current]')")
	p.do(chromedp.NavigateBack())
	p.until("location.search === '?range=1h'")
}

func patchIsCopied(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/workloads/checkout", wide())
	p.until(isDrawn)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		if _, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: name},
			Setting: browser.PermissionSettingGranted, Origin: s.url, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID}); err != nil {
			t.Fatal(err)
		}
	}
	const button = `document.querySelector('button[data-copy="patch-systemd"]')`
	p.do(chromedp.Evaluate[chromedp.Void](button+".focus()"), chromedp.KeyEvent(kb.Enter))
	p.until(button + ".textContent === 'Copied'")
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("navigator.clipboard.readText()", chromedp.EvalAwaitPromise))
	if want := eval[string](p, "document.getElementById('patch-systemd').textContent"); err != nil || got != want || !strings.Contains(got, "CPUQuota=") {
		t.Errorf("copied %q, want %q: %v", got, want, err)
	}
}

func timesAreLocal(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/workloads/checkout", wide())
	p.until(isLive)
	at := eval[[]string](p, "(() => { const e = document.querySelector('.decisions time'); return [e.dateTime, e.textContent, e.title]; })()")
	utc, err := time.Parse(time.RFC3339, at[0])
	if err != nil {
		t.Fatal(err)
	}
	if tokyo := utc.Add(9 * time.Hour).Format("15:04:05"); !strings.HasSuffix(at[1], tokyo) || !strings.Contains(at[2], utc.Format("15:04:05")+" UTC") {
		t.Errorf("%q is shown as %q, on hover %q", at[0], at[1], at[2])
	}
}

func openStaysOpen(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/workloads/search?range=1h", wide())
	p.until(isLive)
	if eval[int](p, "document.querySelectorAll('.decisions > li').length") == 0 {
		t.Fatal("no decisions")
	}
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.decisions summary').focus()"), chromedp.KeyEvent(kb.Enter))
	p.until("document.querySelector('.decisions details').open")
	p.screenshot("decision", true)
	// What is open stays open when the page is drawn again.
	s.publish(&trimtab.Estimate{Workload: "search", Time: time.Now(), Model: "bintree/7", Reports: 77777})
	p.until("document.querySelector('#facts').textContent.includes('77777') && document.querySelector('.decisions details').open")
}

func pagesWithoutScripts(t *testing.T, b context.Context, s *scene) {
	s.besides()
	p := s.open(b, t, "/", narrow())
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for _, page := range everyPage() {
		p.do(chromedp.Navigate(s.url + page.path))
		text, err := chromedp.Run(p.ctx, chromedp.TextContent(chromedp.CSS("body")))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Join(strings.Fields(text), " ")
		for _, w := range append(page.words, "Without JavaScript") {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in %s", page.name, w, text)
			}
		}
		p.screenshot(page.name+"-noscript", true)
	}
}

func connectionIsLost(t *testing.T, b context.Context, s *scene) {
	p := s.open(b, t, "/", wide())
	p.until(isLive)
	s.cut()
	p.until("document.body.classList.contains('old') && document.getElementById('lost').checkVisibility() && /Connection lost at \\d\\d:\\d\\d:\\d\\d.*Next attempt in/s.test(document.getElementById('lost').textContent)")
	p.screenshot("lost", false)
	s.mend()
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#lost button').focus()"), chromedp.KeyEvent(kb.Enter))
	p.until("document.body.classList.contains('live') && document.getElementById('lost').hidden")
	p.forgive()
}

func decisionsArePaged(t *testing.T, b context.Context, s *scene) {
	for i := range uint64(30) {
		set := 1 + float64(i%7)/10
		s.publish(&trimtab.Plan{Pool: "shop", Epoch: 3, Sequence: 1000 + i, Step: 1, Last: true, Time: time.Now(), Lease: 30, Cause: trimtab.Cause{Kind: codes.CauseTick}, Objective: "njc", Capacity: 20,
			Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "shop", Host: "host-a", Workload: "cart", Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(set), Mode: trimtab.Act, Why: trimtab.Reason{Summary: "cart: a step", Binding: trimtab.Binding{Kind: "none"}}}}})
	}
	s.seen("the last plan", func() bool { return s.view.LastPlan().Sequence == 1029 })
	const shown = "[...document.querySelectorAll('.decisions > li')].map(e => e.dataset.key.split('.')[0])"
	p := s.open(b, t, "/workloads/cart?range=1h", wide())
	p.until(isLive)
	first := eval[[]string](p, shown)
	if len(first) != 20 || first[0] != "3-1029" || first[19] != "3-1010" {
		t.Fatalf("%q", first)
	}
	if _, err := chromedp.RunResponse(p.ctx, chromedp.Click(chromedp.CSS("#decisions a[rel=next]"))); err != nil {
		t.Fatal(err)
	}
	p.until("location.search === '?before=3-1010-1&range=1h'")
	if second := eval[[]string](p, shown); len(second) != 20 || second[0] != "3-1009" {
		t.Errorf("%q", second)
	}
}

func staleIsSaid(t *testing.T, b context.Context, _ *scene) {
	services := shop()[:2]
	s := newScene(t, shopConfig(services))
	for i, age := range []time.Duration{0, 3 * time.Minute} {
		s.have[services[i].name] = 1
		s.publish(s.estimate(&services[i], time.Now().Add(-age), 1))
	}
	s.seen("both", func() bool { return s.view.Page(time.Now(), view.Filter{Limit: 9}).Workloads[1].Utility != nil })
	p := s.open(b, t, "/", wide())
	p.until(isLive)
	if got := eval[string](p, "document.querySelector('tr[data-key=search] .state.bad')?.textContent ?? ''"); !strings.HasPrefix(got, "stale: nothing for 3 min") {
		t.Errorf("search is %q", got)
	}
	if eval[bool](p, "document.querySelector('tr[data-key=checkout]').textContent.includes('stale')") {
		t.Error("what is fresh is said to be stale")
	}
}

func (s *scene) mend() { s.serve(s.address) }

// crowd is a pool of many workloads, some of each kind.
func crowd(n int) []service {
	modes := []trimtab.Mode{trimtab.Act, trimtab.Act, trimtab.Recommend, trimtab.Off}
	out := make([]service, n)
	for i := range out {
		class := trimtab.LatencyCritical
		if i%5 == 4 {
			class = trimtab.BestEffort
		}
		out[i] = service{fmt.Sprintf("service-%04d", i), class, modes[i%4], .9, 50 + float64(i%300), .006, .2 + float64(i%17)/4, 1}
	}
	return out
}

func narrow() look { return look{360, 760, false} }

// forgive takes back the problems so far: a test that made them expects them.
func (p *tab) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = nil
}

// slash presses the key as a person does: a page that takes it gets no letter.
func (p *tab) slash() {
	p.t.Helper()
	call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "/", Code: "Slash", WindowsVirtualKeyCode: 191})
	call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash", WindowsVirtualKeyCode: 191})
}
