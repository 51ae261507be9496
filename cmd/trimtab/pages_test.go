package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mapped is a program with two mappings of its own file that may go, and those that
// must stay: what can be written, what was, what is in swap, what nothing is known of,
// and other files.
const mapped = `00400000-00410000 r-xp 00000000 fe:00 77                         /usr/bin/trimtab (deleted)
Rss:                  48 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00410000-00420000 r--p 00010000 fe:00 77                         /usr/bin/trimtab (deleted)
Rss:                  16 kB
Anonymous:             0 kB
Swap:                  0 kB
00420000-00430000 r--p 00020000 fe:00 77                         /usr/bin/trimtab (deleted)
Rss:                  64 kB
Anonymous:             4 kB
Swap:                  0 kB
00430000-00440000 r--p 00030000 fe:00 77                         /usr/bin/trimtab (deleted)
Rss:                  64 kB
Anonymous:             0 kB
Swap:                  4 kB
00440000-00450000 rw-p 00040000 fe:00 77                         /usr/bin/trimtab (deleted)
Rss:                  64 kB
Anonymous:             0 kB
00450000-00460000 r--p 00050000 fe:00 77                         /usr/bin/trimtab (deleted)
Rss:                  64 kB
00460000-00470000 r--p 00000000 fe:01 77                         /usr/lib/libc.so.6
Rss:                  64 kB
Anonymous:             0 kB
00470000-00480000 r--p 00000000 00:00 0
Rss:                  64 kB
Anonymous:             0 kB
`

func TestOnlyPagesThatAreInTheFileOfTheProgramAreGivenBack(t *testing.T) {
	all, err := readMappings(strings.NewReader(mapped))
	if err != nil || len(all) != 8 {
		t.Fatalf("%d mappings: %v", len(all), err)
	}
	got := ownClean(all, 0x400123)
	if len(got) != 2 || got[0].start != 0x400000 || got[0].end != 0x410000 || got[0].resident != 48<<10 || got[1].start != 0x410000 || got[1].resident != 16<<10 {
		t.Errorf("%+v", got)
	}
	for what, address := range map[string]uintptr{"nowhere": 0x100, "in memory without a file": 0x470000} {
		if got := ownClean(all, address); len(got) > 0 {
			t.Errorf("code that is %s: %+v", what, got)
		}
	}
}

func TestWhatIsNoListOfMappingsIsRefused(t *testing.T) {
	for _, text := range []string{"Rss: 4 kB\n", "400000 r-xp 0 fe:00 7\n", "5-4 r-xp 0 fe:00 7\n", "4-5 r-xp 0\n", "x-5 r-xp 0 fe:00 7\n", "4-5 r-xp 0 fe:00 7\nRss: much kB\n"} {
		if all, err := readMappings(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %+v", text, all)
		}
	}
}

// dropsPages is set for the process that drops its pages.
const dropsPages = "TRIMTAB_TEST_DROPS_PAGES"

// It prints "ready", and what dropping its pages came to once a line was read.
func TestProcessThatDropsItsPages(t *testing.T) {
	if os.Getenv(dropsPages) == "" {
		t.Skip("is run by the test below")
	}
	os.Stdout.WriteString("ready\n")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	before := statusMiB(t, os.Getpid(), "RssFile")
	resident, err := dropPages()
	after := statusMiB(t, os.Getpid(), "RssFile")
	if err != nil || resident < 1<<20 || after >= before {
		t.Errorf("%d bytes were resident, %v to %v MiB: %v", resident, before, after, err)
	}
	// What was dropped still runs.
	if code := Main(t.Context(), []string{"--help"}, io.Discard, io.Discard); code != exitDone {
		t.Errorf("help: code %d", code)
	}
}

func TestAProgramThatDroppedItsPagesRunsAlsoWhereItsFileWasReplaced(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, self, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "-test.run=^TestProcessThatDropsItsPages$")
	cmd.Env = append(os.Environ(), dropsPages+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Errorf("%q: %v", line, err)
	}
	// As a package manager does it.
	if err := os.WriteFile(file+".new", bytes.Repeat([]byte{0xcc}, 1<<20), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(said)
	if err := cmd.Wait(); err != nil || !slices.Contains(strings.Fields(string(rest)), "PASS") {
		t.Errorf("%v\n%s", err, rest)
	}
	if err != nil {
		t.Error(err)
	}
}
