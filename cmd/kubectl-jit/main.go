// SPDX-License-Identifier: Apache-2.0

// Command kubectl-jit is the kubectl plugin of jit-scheduler (kubectl jit …). It shows what the provisioner would
// compute, with the provisioner's own code, and decides nothing; it only reads: no command changes anything in the
// cluster or in AWS, whatever credentials it is given.
//
// Exit codes: 0 done; 1 the cluster or AWS did not answer; 2 the input is wrong, and the message says which file,
// document, line and field.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
)

const (
	exitFailed   = 1
	exitBadInput = 2
)

// world is what a command reads, asks and writes.
type world struct {
	in       io.Reader
	out, err io.Writer
	// aws is the configuration for the region, "" for the environment's own.
	aws func(ctx context.Context, region string) (aws.Config, error)
	// cluster is the cluster of the kubeconfig file and context, "" for the usual ones.
	cluster func(kubeconfig, context string) (dynamic.Interface, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, world{os.Stdin, os.Stdout, os.Stderr, awsConfig, clusterClient}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run returns the exit code. Results go to out alone, so that it can be piped.
func run(ctx context.Context, w world, args []string) int {
	root := &cobra.Command{
		Use:               "kubectl-jit",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl jit"},
		Short:             "Look at what jit-scheduler would do; nothing is changed",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return badInput("unknown command %q, see kubectl jit --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(args)
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInput("%v", err) })
	root.AddCommand(newTypesCommand(w))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	for line := range strings.Lines(strings.TrimSpace(err.Error())) {
		// The process ends with an error anyway; one more that cannot be written changes nothing.
		_, _ = fmt.Fprintf(w.err, "error: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if _, ok := errors.AsType[*inputError](err); ok {
		return exitBadInput
	}
	return exitFailed
}
