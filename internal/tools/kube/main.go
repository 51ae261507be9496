// Command kube is the part of a small Kubernetes that the tests run: API server,
// controller manager, scheduler, kubelet and kubectl as one binary, so that the
// linker runs once. The name it is called by, or its first argument, selects the
// part. It is a module of its own: nothing of it reaches trimtab's go.mod.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// part is the command of one component of Kubernetes, nil for an unknown name.
func part(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return manager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "kubectl":
		return cmd.NewDefaultKubectlCommand()
	}
	return nil
}

func main() {
	command := part(filepath.Base(os.Args[0]))
	if command == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		command = part(os.Args[0])
	}
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: kube kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|kubectl ...")
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
