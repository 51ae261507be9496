package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shellDir is a directory with a program named trimtab and files to complete.
func shellDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "trimtab")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "zz one.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "zzdir"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shell runs a script in dir with trimtab on PATH.
func shell(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// asked is a trimtab with two workloads, one of a difficult name, and a best-effort job.
func asked(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/jobs" {
			fmt.Fprint(w, `{"host":"a","jobs":[{"id":"batch/1","state":"running"}]}`)
			return
		}
		fmt.Fprint(w, `{"workloads":[{"name":"checkout","state":"ok"},{"name":"shop:cart","state":"ok"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What every shell must complete: a line, and candidates that come of it.
var completions = []struct {
	line string
	want []string
}{
	{"trimtab st", []string{"status"}},
	{"trimtab check con", []string{"config"}},
	{"trimtab debug bundle --out", []string{"--output"}},
	{"trimtab status -o ", []string{"json", "text", "wide", "yaml"}},
	{"trimtab --log.level d", []string{"debug"}},
	{"trimtab explain che", []string{"checkout"}},
	{"trimtab explain ba", []string{"batch/1"}},
	{"trimtab run --storage.path zz", []string{"zzdir"}},
	{"trimtab check config zz", []string{"zz one.yaml", "zzdir"}},
	{"trimtab watchd", nil},
}

// patiently tries again what did not complete as it should: on a busy machine a
// trimtab that is asked may not answer within completeTimeout.
func patiently(t *testing.T, try func(wrong func(format string, args ...any))) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; {
		var problems []string
		try(func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) })
		if len(problems) == 0 {
			return
		}
		if time.Now().After(limit) {
			t.Fatal(strings.Join(problems, "\n"))
		}
	}
}

func TestBashCompletesCommandsFlagsValuesFilesAndRunningWorkloads(t *testing.T) {
	t.Parallel()
	dir := shellDir(t)
	script := `source <(trimtab completion bash)
complete -p trimtab | grep -q _trimtab || { echo "not registered"; exit 1; }
try() { # LINE WORD, as bash calls a completion function
  COMP_LINE=$1 COMP_POINT=${#1}
  _trimtab trimtab "$2" ""
  printf '%s|' "${COMPREPLY[@]}"; echo
}
`
	for _, c := range completions {
		script += fmt.Sprintf("try %q %q\n", c.line, c.line[strings.LastIndex(c.line, " ")+1:])
	}
	// bash takes what stands behind "=" and ":" for the word.
	script += "try 'trimtab status --output=j' j\ntry 'trimtab status --output=' =\ntry 'trimtab explain shop:c' c\n"
	url := asked(t)
	patiently(t, func(wrong func(string, ...any)) {
		lines := strings.Split(shell(t, dir, []string{"TRIMTAB_URL=" + url}, "bash", "--norc", "-c", script), "\n")
		for i, c := range completions {
			got := words(lines[i], "|")
			if !slices.Equal(got, sorted(c.want)) {
				wrong("%q: %q, want %q", c.line, got, c.want)
			}
		}
		for i, want := range []string{"json|", "text|wide|json|yaml|", "cart|"} {
			if got := lines[len(completions)+i]; got != want {
				wrong("behind = or ':': %q, want %q", got, want)
			}
		}
	})
}

func TestFishCompletesTheSame(t *testing.T) {
	t.Parallel()
	dir := shellDir(t)
	script := "trimtab completion fish | source\n"
	for _, c := range completions {
		script += fmt.Sprintf("for x in (complete -C %q); echo -n (string split \\t -- $x)[1]'|'; end; echo\n", c.line)
	}
	url := asked(t)
	patiently(t, func(wrong func(string, ...any)) {
		lines := strings.Split(shell(t, dir, []string{"TRIMTAB_URL=" + url}, "fish", "--no-config", "-c", script), "\n")
		for i, c := range completions {
			got := words(strings.NewReplacer("/|", "|", `\`, "").Replace(lines[i]), "|")
			if !slices.Equal(got, sorted(c.want)) {
				wrong("%q: %q, want %q", c.line, got, c.want)
			}
		}
	})
}

func TestZshCompletesOnATerminal(t *testing.T) {
	t.Parallel()
	dir := shellDir(t)
	// A widget on Ctrl-X says what stands on the line after TAB.
	script := `zmodload zsh/zpty
zpty shell "zsh -f -i"
zpty -w shell "unsetopt beep; autoload -U compinit; compinit -u -D; source <(trimtab completion zsh); _show() { print -r -- \"LINE<\$BUFFER>END\"; BUFFER= }; zle -N _show; bindkey '^X' _show; print LOAD''ED"
zpty -r -m shell out '*LOADED*'
try() { zpty -n -w shell "$1"$'\t\x18'; zpty -r -m shell out '*LINE<*>END*'; out=${out##*LINE<}; print -r -- "${out%%>END*}" }
try 'trimtab stat'
try 'trimtab debug bundle --outp'
try 'trimtab status --output=j'
try 'trimtab explain che'
try 'trimtab explain shop:'
try 'trimtab run --storage.path zz'
try 'trimtab completion z'
`
	url := asked(t)
	patiently(t, func(wrong func(string, ...any)) {
		got := strings.Split(shell(t, dir, []string{"TRIMTAB_URL=" + url, "TERM=dumb"}, "zsh", "-f", "-c", script), "\n")
		for i, want := range []string{"trimtab status", "trimtab debug bundle --output", "trimtab status --output=json", "trimtab explain checkout",
			"trimtab explain shop:cart", "trimtab run --storage.path zzdir/", "trimtab completion zsh"} {
			if i >= len(got) || strings.TrimSpace(strings.ReplaceAll(got[i], `\:`, ":")) != want {
				wrong("%q, want %q", got, want)
				break
			}
		}
	})
}

func TestATrimtabThatDoesNotAnswerLeavesNothingToComplete(t *testing.T) {
	// It answers only when the one who asked has gone.
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	t.Setenv("TRIMTAB_URL", "http://127.0.0.1:1")
	for _, url := range []string{s.URL, "http://127.0.0.1:1", "nonsense", ":"} {
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"complete", "--", "explain", "--url", url, ""}, &out, &out); code != exitDone || out.Len() != 0 {
			t.Errorf("%s: code %d, %q", url, code, out.String())
		}
	}
}

func TestAnAddressOnTheLineIsAskedForWorkloads(t *testing.T) {
	url := asked(t)
	patiently(t, func(wrong func(string, ...any)) {
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"complete", "--", "explain", "--url=" + url, "sh"}, &out, &out); code != exitDone || out.String() != "shop:cart\tok\n" {
			wrong("code %d, %q", code, out.String())
		}
	})
}

func words(line, sep string) []string {
	return sorted(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(sep, r) }))
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
