package natsbus

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the table in ARCHITECTURE.md")

func TestTheTableOfSubjectsAndStreamsIsTheOneInUse(t *testing.T) {
	const path, begin, end = "../../ARCHITECTURE.md", "<!-- table:bus -->\n", "<!-- end:bus -->"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := "\n" + strings.TrimSpace(markdown()) + "\n\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("%s is not what natsbus.Table says: run `make generate`", path)
	}
}

// markdown prints [Table] for ARCHITECTURE.md.
func markdown() string {
	var b strings.Builder
	b.WriteString("| subjects | guarantee | stream or bucket | kept | MaxBytes | MaxAge | AckWait | MaxDeliver | dead letters at | who may publish | who may read | what |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range Table() {
		name, subjects := r.Name, "`"+r.Subjects+"`"
		if r.Bucket {
			name, subjects = "KV "+r.Name, "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", subjects, dash(string(r.Delivery)), dash(name),
			kept(r), size(r.MaxBytes), age(r.MaxAge), age(r.AckWait), dash(count(r.MaxDeliver)), dash(r.Unreadable), roles(r.Publish), roles(r.Read), r.Note)
	}
	return b.String()
}

func roles(all []Role) string {
	var names []string
	for _, r := range all {
		names = append(names, string(r))
	}
	return dash(strings.Join(names, ", "))
}

func kept(r StreamInfo) string {
	switch {
	case r.Name == "":
		return "–"
	case r.PerSubject == 1 && r.Bucket:
		return "last of each key"
	case r.PerSubject == 1:
		return "last of each subject"
	}
	return "all"
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func size(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d MiB", n/mib)
}

func age(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d >= 24*time.Hour:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}
