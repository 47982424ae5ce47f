// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// options are the flags.
type options struct {
	kubeconfig, fakeURL, schedulerName string
	duration                           time.Duration
	json                               bool
	rules                              judge.Rules
	auditLogs, metrics                 []string
}

// parse reads the flags; an error has been printed to stderr.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{rules: judge.Rules{Limits: map[string]float64{}, Skip: map[string]string{}}}
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file of the cluster to watch")
	flags.StringVar(&o.fakeURL, "fake-url", "", "base URL of the fake AWS endpoint; without it nothing about instances and calls is judged")
	flags.StringVar(&o.schedulerName, "scheduler-name", "jit-scheduler", "scheduler whose pods are judged")
	flags.DurationVar(&o.duration, "duration", 0, "how long to watch; 0 is until interrupted")
	flags.BoolVar(&o.json, "json", false, "print the report as JSON, with every pod's times")
	flags.BoolVar(&o.rules.WantNothingLeft, "want-nothing-left", false, "instances, Nodes of a NodePool, NodeClaims and launch templates must be gone at the end")
	flags.BoolVar(&o.rules.AllowUnlaunched, "allow-unlaunched", false, "accept a NodeClaim without pods if it never had an instance")
	flags.BoolVar(&o.rules.AllowSwept, "allow-swept", false, "accept an instance without a NodeClaim if it is terminated at the end")
	flags.DurationVar(&o.rules.ReasonMaxAge, "reason-max-age", 10*time.Minute, "how old the last event of an unbound pod may be")
	flags.Func("limit", "pool=vCPU: the most that the claims of a NodePool may have; may be repeated", o.addLimit)
	flags.Func("skip", "invariant=reason: do not judge it; may be repeated", o.addSkip)
	flags.Func("replica", "name=access key[,credential id]: a replica among which leadership moves; may be repeated", o.addReplica)
	flags.Func("audit-log", "audit log of the API server, read at the end; may be repeated", appendTo(&o.auditLogs))
	flags.Func("metrics", "file with a scheduler's metrics, read at the end; may be repeated", appendTo(&o.metrics))
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("parsing flags: %w", err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("parsing flags: unexpected %q", flags.Args())
	}
	if o.kubeconfig == "" {
		return nil, errors.New("--kubeconfig is required")
	}
	return o, nil
}

func appendTo(list *[]string) func(string) error {
	return func(value string) error {
		*list = append(*list, value)
		return nil
	}
}

func (o *options) addLimit(value string) error {
	pool, vcpus, _ := strings.Cut(value, "=")
	limit, err := strconv.ParseFloat(vcpus, 64)
	if err != nil || pool == "" {
		return fmt.Errorf("want pool=vCPU, got %q", value)
	}
	o.rules.Limits[pool] = limit
	return nil
}

func (o *options) addSkip(value string) error {
	name, reason, _ := strings.Cut(value, "=")
	if name == "" || reason == "" {
		return fmt.Errorf("want invariant=reason, got %q", value)
	}
	o.rules.Skip[name] = reason
	return nil
}

func (o *options) addReplica(value string) error {
	name, rest, ok := strings.Cut(value, "=")
	accessKey, credentialID, _ := strings.Cut(rest, ",")
	if !ok || name == "" || accessKey == "" {
		return fmt.Errorf("want name=access key[,credential id], got %q", value)
	}
	o.rules.Replicas = append(o.rules.Replicas, judge.Replica{Name: name, AccessKey: accessKey, CredentialID: credentialID})
	return nil
}

// run judges until ctx ends or the time is up; the report itself is not cut
// short by ctx.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (passed bool, err error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	kube, dynamic, err := judge.Clients(o.kubeconfig)
	if err != nil {
		return false, err
	}
	// Watching goes on while the report is made.
	j, err := judge.Start(context.WithoutCancel(ctx), judge.Config{
		Kube: kube, Dynamic: dynamic, FakeURL: o.fakeURL, SchedulerName: o.schedulerName, Rules: o.rules,
	})
	if err != nil {
		return false, err
	}
	defer j.Stop()
	fmt.Fprintln(stderr, "judge: watching")
	wait(ctx, o.duration)
	return o.report(context.WithoutCancel(ctx), j, stdout)
}

// wait ends with ctx, or after d if that is not 0.
func wait(ctx context.Context, d time.Duration) {
	if d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	<-ctx.Done()
}

func (o *options) report(ctx context.Context, j *judge.Judge, stdout io.Writer) (passed bool, err error) {
	if err := o.addFiles(j); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	report, err := j.Report(ctx)
	if err != nil {
		return false, err
	}
	if o.json {
		err = report.JSON(stdout)
	} else {
		err = report.Print(stdout)
	}
	return report.Passed(), err
}

func (o *options) addFiles(j *judge.Judge) error {
	for _, name := range o.metrics {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading metrics: %w", err)
		}
		j.AddMetrics(string(text))
	}
	for _, name := range o.auditLogs {
		if err := addAuditLog(j, name); err != nil {
			return err
		}
	}
	return nil
}

func addAuditLog(j *judge.Judge, name string) error {
	log, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading audit log: %w", err)
	}
	defer log.Close()
	return j.AddAudit(log)
}
