package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/scrub"
	"github.com/trimtab/trimtab/internal/site"
)

// debugCmd is `trimtab debug`.
type debugCmd struct {
	Bundle bundleCmd `cmd:"" help:"Collect what helps to find a fault into one file, without secrets."`
}

// bundleCmd is `trimtab debug bundle`.
type bundleCmd struct {
	URL     string `help:"Address of the running trimtab." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL"`
	Output  string `help:"The file to write, a tar.gz. Default: trimtab-debug-TIME.tar.gz." type:"path" placeholder:"FILE"`
	Config  string `name:"config.file" help:"A configuration file to add, for a trimtab that does not start." type:"path" placeholder:"FILE"`
	Storage string `name:"storage.path" help:"The directory that trimtab runs with." default:"${storage}" type:"path" placeholder:"DIR"`
}

// Example is shown by --help.
func (bundleCmd) Example() string {
	return "trimtab debug bundle --output /tmp/trimtab.tar.gz\ntrimtab debug bundle --config.file trimtab.yaml   # when it does not start"
}

// Bounds of a bundle.
const (
	bundleWorkloads = 1000
	bundleHistory   = 50
	bundleTime      = time.Minute
)

// Run collects and writes the bundle, which also names what could not be collected.
func (c *bundleCmd) Run(ctx context.Context, t terminal) error {
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	b := &bundle{scrubber: scrub.New(os.Environ()), time: time.Now()}
	fmt.Fprintf(t.err, "asking %s\n", scrub.URL(c.URL))
	b.local(c)
	b.running(ctx, client.Client{URL: c.URL})
	b.add("missing.txt", []byte(strings.Join(b.missing, "\n")+"\n"))
	if c.Output == "" {
		c.Output = "trimtab-debug-" + b.time.UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	if err := b.write(c.Output); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	fmt.Fprintf(t.out, "%s: %d files. It holds names of workloads and hosts and your PromQL, no secrets; look before you send it.\n", c.Output, len(b.files))
	for _, m := range b.missing {
		fmt.Fprintln(t.err, "missing:", m)
	}
	return nil
}

// bundle has the files that were collected.
type bundle struct {
	scrubber *scrub.Scrubber
	time     time.Time
	files    []bundleFile
	missing  []string
}

type bundleFile struct {
	name string
	data []byte
}

// add adds a file without its secrets.
func (b *bundle) add(name string, data []byte) {
	b.files = append(b.files, bundleFile{name, b.scrubber.Bytes(data)})
}

// lack records a file that could not be read, and why.
func (b *bundle) lack(name string, err error) {
	b.missing = append(b.missing, string(b.scrubber.Bytes([]byte(name+": "+err.Error()))))
}

// local adds the files that are available without a running trimtab.
func (b *bundle) local(c *bundleCmd) {
	text := version.Print("trimtab") + "\n"
	if info, ok := debug.ReadBuildInfo(); ok {
		text += "\n" + info.String()
	}
	b.add("version.txt", []byte(text))
	b.add("host.txt", hostFacts())
	if list, err := listing(site.JournalDir(c.Storage)); err != nil {
		b.lack("journal.txt", err)
	} else {
		b.add("journal.txt", list)
	}
	if c.Config == "" {
		return
	}
	cfg, err := config.Load(c.Config)
	if err != nil {
		// The error has places and keys of the file, and is scrubbed.
		b.add("config.file.errors.txt", []byte(err.Error()+"\n"))
		return
	}
	b.add("config.file.yaml", cfg.Redacted())
}

// running adds the answers of a running trimtab.
func (b *bundle) running(ctx context.Context, c client.Client) {
	var status []byte
	for _, x := range []struct{ name, path string }{
		{"status.json", client.StatusPath}, {"ready.txt", "/-/ready"}, {"config.yaml", "/api/v1/config"}, {"plan.json", "/api/v1/plan"},
		{"diff.json", "/api/v1/diff"}, {"pipeline.json", "/api/v1/pipeline"}, {"metrics.txt", "/metrics"}, {"log.txt", "/api/v1/debug/log"}, {"goroutines.txt", "/api/v1/debug/goroutines"},
	} {
		data, err := c.Text(ctx, x.path)
		if err != nil {
			b.lack(x.name, err)
			if status == nil {
				return // no trimtab answers
			}
			continue
		}
		b.add(x.name, data)
		if status == nil {
			status = data
		}
	}
	var s view.Status
	if err := json.Unmarshal(status, &s); err != nil {
		b.lack("explain", err)
		return
	}
	for i := range s.Workloads {
		if i == bundleWorkloads {
			b.lack("explain", fmt.Errorf("only the first %d of %d workloads", i, len(s.Workloads)))
			return
		}
		name := s.Workloads[i].Name
		data, err := c.Text(ctx, client.ExplainPath(name, bundleHistory))
		if err != nil {
			b.lack("explain/"+fileName(name), err)
			continue
		}
		b.add(fmt.Sprintf("explain/%03d-%s.json", i, fileName(name)), data)
	}
}

// fileName replaces characters that some file system refuses.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r < 128 && (r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
	return safe[:min(len(safe), 80)]
}

// listing names the files below dir, with mode, size and time, never content.
func listing(dir string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintln(&b, dir)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintf(&b, "%s %9d %s %s\n", info.Mode(), info.Size(), info.ModTime().UTC().Format(time.RFC3339), strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	return b.Bytes(), err
}

// hostFacts describes the machine. Of environment variables it has only the names.
func hostFacts() []byte {
	var b bytes.Buffer
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		fmt.Fprintf(&b, "kernel: %s %s %s\n", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))
	}
	fmt.Fprintf(&b, "cpus: %d, GOMAXPROCS %d\n", runtime.NumCPU(), runtime.GOMAXPROCS(0))
	fmt.Fprintf(&b, "user: %d, effective %d\n", os.Getuid(), os.Geteuid())
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		fmt.Fprintf(&b, "cgroup: %v\n", err)
	} else if r, err := hostfs.OpenRoot(root); err == nil {
		fmt.Fprintf(&b, "cgroup: %s at %s\n", r.Filesystem(), root)
		r.Close()
	}
	for _, name := range []string{"/etc/os-release", "/proc/self/cgroup", "/proc/self/limits", "/proc/loadavg", "/proc/pressure/cpu", "/proc/meminfo"} {
		if text, err := os.ReadFile(name); err == nil {
			fmt.Fprintf(&b, "\n%s:\n%s", name, text)
		}
	}
	names := []string{}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		for _, prefix := range []string{"TRIMTAB_", "OTEL_", "GO", "NO_COLOR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
			if strings.HasPrefix(strings.ToUpper(name), prefix) {
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	fmt.Fprintf(&b, "\nset in the environment: %s\n", strings.Join(names, " "))
	return b.Bytes()
}

// write makes the archive, for its owner only.
func (b *bundle) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(b.archive(f), f.Close())
}

func (b *bundle) archive(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range b.files {
		h := &tar.Header{Name: "trimtab-debug/" + f.name, Mode: 0o600, Size: int64(len(f.data)), ModTime: b.time}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}
