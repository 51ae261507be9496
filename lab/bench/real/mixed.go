package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// scripts are the services of scenario mixed, each in the language of its
// runtime.
//
//go:embed mixed
var scripts embed.FS

// team returns the services of a scenario and their names.
func team(of shape.Scenario) ([3]string, [3]software) {
	if !of.Mixed {
		return shape.Names(), [3]software{&nginx{}, &redis{}, &postgres{}}
	}
	return [3]string{"node", "java", "php"}, [3]software{
		&managed{file: "service.js", program: node},
		&managed{file: "Service.java", program: java, cold: true},
		&managed{file: "index.php", program: apache},
	}
}

// missing says what scenario mixed needs and this machine lacks.
func missing() error {
	_, errNode := node("", "", "")
	_, errJava := java("", "", "")
	_, _, errPHP := apacheHome()
	return errors.Join(errNode, errJava, errPHP)
}

// managed is a service that its runtime reads from a file: it does so many
// units of work for each request, and says so.
type managed struct {
	file string
	// program returns what serves the file in dir at an address.
	program func(dir, file, address string) ([]string, error)
	// cold tells that a request is dear until the service has run for a while:
	// each row begins with a new process.
	cold bool

	group        *rig.Group
	dir, address string
	// front is the address of the proxy before it; "": there is none.
	front   string
	process *rig.Process
	client  *http.Client
}

// coldFor is how long a row's load may find a JVM cold: its first 20 requests took 27 ms of CPU
// time each on a machine where later ones took 15 ms, and at the least load they come in 3 s.
const coldFor = 10 * time.Second

func (m *managed) start(ctx context.Context, in *rig.Group, dir string) error {
	m.group, m.dir = in, dir
	text, err := scripts.ReadFile("mixed/" + m.file)
	if err != nil {
		return fmt.Errorf("start %s: %w", m.file, err)
	}
	// Apache's processes are another user's.
	err = os.MkdirAll(filepath.Join(dir, "www"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "www", m.file), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", m.file, err)
	}
	m.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * inFlight, IdleConnTimeout: 10 * time.Second}}
	return m.run(ctx)
}

// run starts the process, and returns when it answers.
func (m *managed) run(ctx context.Context) (err error) {
	if m.address, err = rig.FreeAddress(); err != nil {
		return err
	}
	args, err := m.program(m.dir, filepath.Join(m.dir, "www", m.file), m.address)
	if err != nil {
		return err
	}
	m.process, err = rig.Start(rig.Program{Args: args, Dir: m.dir, Log: filepath.Join(m.dir, "said.log"), Stop: syscall.SIGTERM}, m.group)
	if err != nil {
		return err
	}
	return m.process.Await(ctx, func(ctx context.Context) error { return m.do(ctx, 1) })
}

// do asks for so many units of work.
func (m *managed) do(ctx context.Context, work int) error { return m.ask(ctx, work, 1) }

// ask asks for so many units of work with a request of a class, through the proxy if there is one.
func (m *managed) ask(ctx context.Context, work, class int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cmp.Or(m.front, m.address)+"/?work="+strconv.Itoa(work), nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", m.file, err)
	}
	if m.front != "" {
		req.Header.Set(classHeader, services.Classes()[class])
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", m.file, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("read from %s: %w", m.file, err)
	}
	if m.front != "" && resp.StatusCode == http.StatusServiceUnavailable {
		return errShed
	}
	if resp.StatusCode != http.StatusOK || string(said) != fmt.Sprintf("done %d\n", work) {
		return fmt.Errorf("ask %s for %d units: %s, %.80q: %w", m.file, work, resp.Status, said, rig.ErrAnswer)
	}
	return nil
}

func (m *managed) close() {
	if m.client != nil {
		m.client.CloseIdleConnections()
	}
	if m.process != nil {
		m.process.Close()
		m.process = nil
	}
}

// isCold tells whether the service begins each row with a new process.
func (s *service) isCold() bool {
	r, ok := s.software.(*managed)
	return ok && r.cold
}

// renew starts those anew that begin a row cold. The quotas must be off.
func (h *host) renew(ctx context.Context) error {
	for _, s := range h.services {
		if !s.isCold() {
			continue
		}
		r, _ := s.software.(*managed)
		r.close()
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func node(_, file, address string) ([]string, error) {
	binary, err := rig.Lookup("node", "nodejs")
	return []string{binary, file, address}, err
}

// java runs the source: its compiler is a part of the JDK. The heap is small,
// so that it is collected often; and HttpServer, which waits with the end of an
// answer for the client's acknowledgement of its beginning, is told not to.
func java(_, file, address string) ([]string, error) {
	const debian = "default-jdk-headless"
	if _, err := rig.Lookup("javac", debian); err != nil {
		return nil, err
	}
	binary, err := rig.Lookup("java", debian)
	return []string{binary, "-Xms64m", "-Xmx64m", "-XX:-UsePerfData", "-Dsun.net.httpserver.nodelay=true", file, address}, err
}

func apache(dir, _, address string) ([]string, error) {
	binary, php, err := apacheHome()
	if err != nil {
		return nil, err
	}
	form, err := scripts.ReadFile("mixed/apache.conf")
	if err != nil {
		return nil, fmt.Errorf("start apache: %w", err)
	}
	conf := filepath.Join(dir, "apache.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, string(form), dir, address, filepath.Dir(php), php), 0o600); err != nil {
		return nil, fmt.Errorf("start apache: %w", err)
	}
	return []string{binary, "-D", "FOREGROUND", "-d", dir, "-f", conf}, nil
}

// apacheHome finds Apache and its newest module of PHP.
func apacheHome() (binary, php string, err error) {
	const debian = "apache2 libapache2-mod-php"
	if binary, err = rig.Lookup("apache2", debian); err != nil {
		return "", "", err
	}
	found, err := filepath.Glob("/usr/lib/apache2/modules/libphp*.so")
	if err != nil || len(found) == 0 {
		return "", "", fmt.Errorf("no PHP for Apache here: apt-get install --no-install-recommends %s: %w", debian, errors.Join(err, os.ErrNotExist))
	}
	return binary, found[len(found)-1], nil
}
