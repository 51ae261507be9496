// Package cluster writes the files that a site needs to run trimtab's roles as separate processes:
// the configuration of NATS servers that hold each user to its role, certificates from an authority
// of its own, the NATS section of each role, and systemd units.
//
// What a role may do comes from the table of subjects ([natsbus.PermissionsOf]).
// A user is known by its client certificate; there is no password. Files with a
// private key have mode 0600. An authority and certificates that are there
// already are kept, so that hosts can be added; configurations are written anew.
//
//	err := cluster.Spec{Servers: []string{"a", "b", "c"}, Hosts: []string{"h1"}, Pool: "default"}.Write("out")
//
// It starts nothing and copies nothing to other hosts.
package cluster

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
)

// Ports of the NATS servers.
const (
	ClientPort = 4222
	RoutePort  = 6222
	LeafPort   = 7422
)

// maxConsumers bounds the consumers of one stream: two for each of 10,000 agents, the most hosts
// of a planner, and some for consoles. Without a bound in the account a server allows 1,000.
const maxConsumers = 32_000

// Spec says which site.
type Spec struct {
	// Servers are names or addresses of the hosts that run nats-server: one, or an odd number
	// from three on, which keep three copies of every stream.
	Servers []string
	// Hosts are the names of the hosts that run an agent, as they name
	// themselves.
	Hosts []string
	// Pool is the pool that the agents have knobs of.
	Pool string
}

// Validate returns ErrInvalid with the mistake.
func (s Spec) Validate() error {
	name := regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`)
	switch {
	case len(s.Servers)%2 == 0:
		return trimtab.Invalidf("servers: %d of them, want one, three or five: a majority decides", len(s.Servers))
	case len(s.Hosts) == 0:
		return trimtab.Invalidf("hosts: none, and without an agent nothing is turned")
	case s.Pool == "":
		return trimtab.Invalidf("pool: no name")
	}
	for what, all := range map[string][]string{"servers": s.Servers, "hosts": s.Hosts} {
		seen := map[string]bool{}
		for _, n := range all {
			if len(n) > 200 || !name.MatchString(n) && net.ParseIP(n) == nil {
				return trimtab.Invalidf("%s: %.80q is no host name: want letters, digits, '-' and '.'", what, n)
			}
			if seen[strings.ToLower(n)] {
				return trimtab.Invalidf("%s: %s is there twice", what, n)
			}
			seen[strings.ToLower(n)] = true
		}
	}
	return nil
}

// replicas returns how many servers hold each stream.
func (s Spec) replicas() int { return min(3, len(s.Servers)) }

// user is one user of the NATS servers.
type user struct {
	role natsbus.Role
	host string // of an agent
}

// name returns the name in its certificate.
func (u user) name() string {
	if u.role == natsbus.Agent {
		return strings.ToLower(u.host) + ".agent.trimtab"
	}
	return string(u.role) + ".trimtab"
}

// connections are the kinds of connection that it may make.
func (u user) connections() string {
	if u.role == natsbus.Agent {
		return `"STANDARD", "LEAFNODE"`
	}
	return `"STANDARD"`
}

// dir returns the directory of the user's files.
func (u user) dir() string {
	if u.role == natsbus.Agent {
		return "agent-" + u.host
	}
	return string(u.role)
}

func (s Spec) users() (all []user) {
	for _, r := range natsbus.Roles() {
		if r != natsbus.Agent {
			all = append(all, user{role: r})
			continue
		}
		for _, h := range s.Hosts {
			all = append(all, user{r, h})
		}
	}
	return all
}

// secrets returns the agents' secrets, by host, from the keys below dir.
func (s Spec) secrets(dir string) (map[string]string, error) {
	all := map[string]string{}
	for _, h := range s.Hosts {
		key, err := os.ReadFile(filepath.Join(dir, user{natsbus.Agent, h}.dir(), "key.pem"))
		if err != nil {
			return nil, fmt.Errorf("read key of the agent of %s: %w", h, err)
		}
		all[h] = natsbus.SecretOf(key)
	}
	return all, nil
}

func (s Spec) permissions(u user, secrets map[string]string) natsbus.Permissions {
	scope := natsbus.Scope{Pool: s.Pool, Host: u.host, Secret: secrets[u.host]}
	for _, h := range s.Hosts {
		scope.Places = append(scope.Places, natsbus.PlacesOf(h, s.Pool, secrets[h])...)
	}
	return natsbus.PermissionsOf(u.role, scope)
}

// Write writes everything below dir.
func (s Spec) Write(dir string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	ca, err := openAuthority(dir)
	if err != nil {
		return err
	}
	for _, u := range s.users() {
		at := filepath.Join(dir, u.dir())
		if err := ca.issue(at, u.name(), false); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(at, "nats.yaml"), s.section(u), 0o644); err != nil {
			return err
		}
	}
	secrets, err := s.secrets(dir)
	if err != nil {
		return err
	}
	for _, server := range s.Servers {
		at := filepath.Join(dir, "nats-"+server)
		if err := ca.issue(at, server, true); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(at, "nats-server.conf"), s.serverConf(server, secrets), 0o600); err != nil {
			return err
		}
	}
	for _, unit := range units() {
		if err := writeFile(filepath.Join(dir, "systemd", unit.name()), unit.text(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

//go:embed templates
var templates embed.FS

// filled is the text of a template, whose fields the data has.
func filled(name string, data any) string {
	var b strings.Builder
	t := template.Must(template.ParseFS(templates, "templates/"+name))
	if err := t.Execute(&b, data); err != nil {
		panic("cluster: " + err.Error()) // the data has every field: tests fill each template
	}
	return b.String()
}

// section is the NATS section of a user's process.
func (s Spec) section(u user) string {
	data := map[string]any{"Role": u.role, "URL": s.addresses(ClientPort), "Replicas": s.replicas()}
	if u.role == natsbus.Agent {
		data["Leaf"] = s.addresses(LeafPort)
	}
	return filled("nats.yaml", data)
}

// addresses are the URLs of a port of all servers.
func (s Spec) addresses(port int) string { return strings.Join(s.urls(port), ",") }

func (s Spec) urls(port int) (urls []string) {
	for _, server := range s.Servers {
		urls = append(urls, "tls://"+net.JoinHostPort(server, strconv.Itoa(port)))
	}
	return urls
}

// serverConf is the configuration of one NATS server.
func (s Spec) serverConf(server string, secrets map[string]string) string {
	type allowed struct {
		Name, Connections        string
		Publish, Deny, Subscribe []string
		Answers                  bool
	}
	var users []allowed
	for _, u := range s.users() {
		p := s.permissions(u, secrets)
		sorted := func(subjects []string) []string { return slices.Sorted(slices.Values(subjects)) }
		users = append(users, allowed{u.name(), u.connections(), sorted(p.Publish), sorted(p.Deny), sorted(p.Subscribe), p.Answers})
	}
	data := map[string]any{
		"Server": server, "ClientPort": ClientPort, "LeafPort": LeafPort, "RoutePort": RoutePort,
		"MaxPayload": natsbus.MaxPayload, "Domain": natsbus.Domain, "MaxConsumers": maxConsumers, "Users": users,
	}
	if len(s.Servers) > 1 {
		data["Routes"] = s.urls(RoutePort)
	}
	return filled("nats-server.conf", data)
}

// writeFile writes a file whole or not at all.
func writeFile(path, text string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
