package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// block is one fenced block of a page.
type block struct {
	page, language, text string
	line                 int
}

// blocks returns the fenced blocks of a page, named relative to the top.
func blocks(t *testing.T, page string) (all []block) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	open := false
	for n, line := range strings.Split(string(b), "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			all = append(all, block{page: page, language: language, line: n + 1})
			open = true
		case fence:
			open = false
		case open:
			all[len(all)-1].text += line + "\n"
		}
	}
	return all
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// commands returns the command lines of a block: all lines of a script, and
// those behind a $ where a block shows what is printed, too.
func (b block) commands() (lines []string) {
	for line := range strings.SplitSeq(b.text, "\n") {
		typed, shown := strings.CutPrefix(line, "$ ")
		if shown || b.language == "sh" && strings.TrimSpace(line) != "" {
			lines = append(lines, typed)
		}
	}
	return lines
}

// inBash gives a directory in which trimtab, as ./bin/trimtab too, is this
// binary, and a function that runs one line there.
func inBash(t *testing.T, dir, url string) func(line string) (code int, out string) {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Symlink(self, filepath.Join(dir, "bin", "trimtab"))); err != nil {
		t.Fatal(err)
	}
	return func(line string) (int, string) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TRIMTAB_URL="+url, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
}

func TestEveryExampleOfObjectivesPrintsWhatThePageShows(t *testing.T) {
	for _, b := range blocks(t, "docs/objectives.md") {
		dir := t.TempDir()
		run := inBash(t, dir, "http://127.0.0.1:1")
		switch b.language {
		case "yaml":
			if err := os.WriteFile(filepath.Join(dir, "trimtab.yaml"), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, out := run("trimtab check config trimtab.yaml"); code != exitDone {
				t.Errorf("%s: code %d\n%s", b, code, out)
			}
		case "console":
			line, want, _ := strings.Cut(strings.TrimPrefix(b.text, "$ "), "\n")
			if strings.Contains(line, "trimtab-lab ") {
				continue // a test of cmd/trimtab-lab runs it
			}
			if code, out := run(line); code != exitDone || out != want {
				t.Errorf("%s: %s: code %d\n%s", b, line, code, out)
			}
		default:
			t.Errorf("%s: a block in %q, which nothing tries", b, b.language)
		}
	}
}

// laidOver returns base with another configuration laid over it: mappings are
// joined, a workload of the same name is joined, everything else is replaced.
func laidOver(base, over map[string]any) map[string]any {
	for key, v := range over {
		switch v := v.(type) {
		case map[string]any:
			if old, ok := base[key].(map[string]any); ok {
				v = laidOver(old, v)
			}
			base[key] = v
		case []any:
			if key == "workloads" {
				base[key] = joinedByName(base[key], v)
				continue
			}
			base[key] = v
		default:
			base[key] = v
		}
	}
	return base
}

func joinedByName(base any, more []any) []any {
	all, _ := base.([]any)
	for _, w := range more {
		w := w.(map[string]any)
		i := slices.IndexFunc(all, func(old any) bool { return old.(map[string]any)["name"] == w["name"] })
		if i < 0 {
			all = append(all, w)
			continue
		}
		all[i] = laidOver(all[i].(map[string]any), w)
	}
	return all
}

// tour returns the blocks of README and of the pages that go on from it, whose
// commands are tried and whose configurations are laid over README's first.
func tour(t *testing.T) (all []block) {
	t.Helper()
	for _, page := range []string{"README.md", "docs/start.md", "docs/beside.md", "docs/blame.md", "docs/lab.md"} {
		all = append(all, blocks(t, page)...)
	}
	return all
}

// readme returns the configurations that the tour shows: those that are whole, and
// the first of them with each part that is to be added to it.
func readme(t *testing.T) (files []string) {
	t.Helper()
	for _, b := range tour(t) {
		if b.language != "yaml" || strings.HasPrefix(b.text, "# alertmanager.yml") {
			continue
		}
		if strings.Contains(b.text, "\npool:") || strings.HasPrefix(b.text, "pool:") {
			files = append(files, b.text)
			continue
		}
		if len(files) == 0 {
			t.Fatalf("%s: a part of a configuration before a whole one", b)
		}
		var base, over map[string]any
		if err := errors.Join(yaml.Unmarshal([]byte(files[0]), &base), yaml.Unmarshal([]byte(b.text), &over)); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		text, err := yaml.Marshal(laidOver(base, over))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	return files
}

func TestEveryConfigurationOfTheReadmeIsRight(t *testing.T) {
	files := readme(t)
	if len(files) < 3 {
		t.Fatalf("%d configurations", len(files))
	}
	for _, text := range files {
		name := filepath.Join(t.TempDir(), "trimtab.yaml")
		token := filepath.Join(filepath.Dir(name), "alertmanager.token")
		text = strings.ReplaceAll(text, "/etc/trimtab/alertmanager.token", token)
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.WriteFile(token, []byte("secret-of-this-test"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if code, out := say(t, "check", "config", name); code != exitDone {
			t.Errorf("code %d:\n%s\n%s", code, out, text)
		}
	}
}

// runElsewhere has the commands that run for long, or need what a test of this
// package does not have: here they are only read, and the test that is named runs
// what they do. A plan's ID is an example, so its plan may not be there.
func runElsewhere() map[string]string {
	const stages = "TestStagesAsProcessesOfTheirOwnMoveALimitAndReplaceEachOther"
	return map[string]string{
		"trimtab run": "TestTheLoopRunsFromSpansToAChangedCPULimit", "trimtab demo": "TestTheDemoKeepsToTheCapacityAndRestoresTheLimits",
		"trimtab collector": stages, "trimtab analyzer": stages, "trimtab planner": stages, "trimtab console": stages, "trimtab agent": stages,
		"trimtab blame": "TestTheInjectedComponentIsBlamedOnRecordedIncidents", "trimtab replay": "TestALoadedSiteIsTracedAndItsRecordingGivesTheSameBytes",
		"trimtab job":    "TestJobsAreSubmittedListedPrintedAndCancelled",
		"trimtab init >": "TestADraftOfWhatIsThereIsAConfigurationThatRuns",
		// A service of the demo.
		"trimtab explain search": "TestTheDemoKeepsToTheCapacityAndRestoresTheLimits",
		"curl":                   "TestAJobThatRegistersItselfIsRunAndOneThatFinishesIsLetGo", "trimtab explain train": "TestAJobThatRegistersItselfIsRunAndOneThatFinishesIsLetGo",
	}
}

// mayFail has what a command may exit with beside 0.
func mayFail() map[string]int {
	return map[string]int{"trimtab diff": exitChanges, "trimtab apply": exitError}
}

func TestWhatIsRunElsewhereIsRun(t *testing.T) {
	var text strings.Builder
	for _, pattern := range []string{"*_test.go", "../../internal/site/*_test.go", "../../agent/*/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
	}
	for command, test := range runElsewhere() {
		if !strings.Contains(text.String(), "func "+test+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", command, test)
		}
	}
}

// made are the targets of the Makefile.
func made(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(string(b), -1) {
		all[m[1]] = true
	}
	return all
}

// startOf returns the value of the longest key that line starts with.
func startOf[V any](of map[string]V, line string) (v V, ok bool) {
	best := ""
	for key := range of {
		if strings.HasPrefix(line+" ", key+" ") && len(key) > len(best) {
			best = key
		}
	}
	return of[best], best != ""
}

// parses reports how the command line fails that trimtab is given.
func parses(line string) error {
	k, err := kong.New(&grammar{}, kong.Name("trimtab"), kong.Vars{"version": "", "storage": ""}, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		return err
	}
	_, err = k.Parse(strings.Fields(line)[1:])
	return err
}

func TestEveryCommandOfTheReadmeRunsAsPrinted(t *testing.T) {
	p := prepare(t, fixtureQuotas(t), "")
	// What the page shows, but for places and addresses that this test has to itself.
	_, places, _ := strings.Cut(p.text, "\nactuator:")
	places, _, _ = strings.Cut(places, "\nworkloads:")
	p.text = readme(t)[0] + "actuator:" + places + "\n"
	unit := filepath.Join(p.q.root, "shop.slice", "checkout.service")
	if err := errors.Join(os.MkdirAll(unit, 0o755), os.Mkdir(filepath.Join(p.q.root, "init.scope"), 0o755), os.WriteFile(filepath.Join(unit, "cpu.max"), []byte("200000 100000\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p.start()
	run := inBash(t, p.dir, "http://"+p.web)
	p.until("a first plan", func() error {
		if code, out := run("trimtab plan"); code != exitDone {
			return errors.New(out)
		}
		return nil
	})
	prepareReadme(t, p.dir)
	shown, targets := tour(t), made(t)
	t.Chdir(p.dir)
	comment := regexp.MustCompile(`\s+# .*$`)
	for _, b := range shown {
		for _, line := range b.commands() {
			for line := range strings.SplitSeq(comment.ReplaceAllString(line, ""), "; ") {
				line = strings.TrimPrefix(line, "./bin/")
				if target, ok := strings.CutPrefix(line, "make "); ok {
					if !targets[target] {
						t.Errorf("%s: the Makefile has no %q", b, target)
					}
					continue
				}
				tryLine(t, b, line, run)
			}
		}
	}
}

// prepareReadme puts into dir what commands of the page read.
func prepareReadme(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"before.json.gz", "slow.json.gz", "recordings/x", "hpa.yaml", "requests-per-minute.csv", "site/planner/nats.yaml", "site/analyzer/nats.yaml", "site/collector/nats.yaml", "site/console/nats.yaml", "site/agent-h1/nats.yaml"} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// tryLine runs one command, or reads it where another test runs it.
func tryLine(t *testing.T, b block, line string, run func(string) (int, string)) {
	t.Helper()
	if strings.HasPrefix(line, "trimtab-lab ") {
		return // a test of cmd/trimtab-lab reads it
	}
	if _, ok := startOf(runElsewhere(), line); ok {
		line, _, _ = strings.Cut(line, " > ")
		if strings.HasPrefix(line, "trimtab ") {
			if err := parses(line); err != nil {
				t.Errorf("%s: %s: %v", b, line, err)
			}
		}
		return
	}
	if strings.HasPrefix(line, "trimtab init") {
		if err := os.RemoveAll("site"); err != nil {
			t.Fatal(err)
		}
	}
	code, out := run(line)
	may, _ := startOf(mayFail(), line)
	if code != exitDone && code != may {
		t.Errorf("%s: %s: code %d\n%s", b, line, code, out)
	}
}
