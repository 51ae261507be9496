package beside

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/speculation"
)

// specOf converts a placement into the task to start, within the limits of this host's
// configuration. If it may not start, the error is trimtab.ErrRefused or trimtab.ErrInvalid.
func (h *taskHost) specOf(p *speculation.Placement, class speculation.TaskClass) (task.Spec, error) {
	program, err := allowedProgram(h.config, p.Spec.Command, p.Spec.Env)
	if err != nil {
		return task.Spec{}, err
	}
	for name := range p.Spec.Env {
		if loads(name) {
			return task.Spec{}, fmt.Errorf("environment: %.40q would have another program's code run: %w", name, trimtab.ErrRefused)
		}
	}
	s := task.Spec{
		ID: p.AttemptID, Class: task.Class(class), Command: append([]string{program}, p.Spec.Command[1:]...), Env: p.Spec.Env,
		Dir: cmp.Or(p.Spec.Dir, "/"), User: h.user, Group: h.group, Progress: p.Spec.Progress,
		Resources: task.Resources{Cores: trimtab.Units(p.Spec.Cores), Memory: trimtab.Units(p.Spec.Memory)},
		Limits:    task.Limits{Output: int64(h.config.Output), Processes: h.config.Processes, Wall: wallOf(h.config.Wall, p.Spec.Wall)},
	}
	return s, s.Validate()
}

// wallOf returns the shorter of two time limits; 0 means no limit.
func wallOf(most time.Duration, asked trimtab.Seconds) time.Duration {
	if d := asked.Duration(); d > 0 && (most == 0 || d < most) {
		return d
	}
	return most
}

// loads reports whether an environment variable can make the dynamic loader run code of another
// file.
func loads(variable string) bool {
	return strings.HasPrefix(variable, "LD_") || variable == "GCONV_PATH" || variable == "GLIBC_TUNABLES"
}

// allowedProgram returns the path of a command's program, if it is one of those allowed. It looks a
// name up in PATH only once, so that the program that is started is the one that was checked.
func allowedProgram(c *config.BesideTasks, command []string, env map[string]string) (string, error) {
	if len(command) == 0 {
		return "", trimtab.Invalidf("command: empty")
	}
	program := command[0]
	if !strings.Contains(program, "/") {
		found := ""
		for _, dir := range filepath.SplitList(env["PATH"]) {
			name := filepath.Join(dir, program)
			info, err := os.Stat(name)
			if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				found = name
				break
			}
		}
		if found == "" {
			return "", trimtab.Invalidf("command %.200q: not in the PATH of its environment", program)
		}
		program = found
	}
	if path.Clean(program) == program && path.IsAbs(program) {
		for _, pattern := range c.Programs {
			if ok, err := path.Match(pattern, program); ok && err == nil {
				return program, nil
			}
		}
	}
	return "", fmt.Errorf("program %.200q is none that this host allows: %w", program, trimtab.ErrRefused)
}
