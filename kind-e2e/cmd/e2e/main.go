// SPDX-License-Identifier: Apache-2.0

// Command e2e runs the end-to-end cases on a real control plane and a fake AWS endpoint, and exits 1 if one fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/e2e"
)

func main() {
	run := flag.String("run", "", "regular expression of the names of the cases to run")
	list := flag.Bool("list", false, "print the cases and what each is about")
	product := flag.String("product", "", "binary to test; this repository's is built otherwise")
	name := flag.String("cluster", "e2e", "name of the cluster, whose state is in .bin/run/<name>")
	flag.Parse()
	if *list {
		e2e.List(os.Stdout)
		return
	}
	match, err := regexp.Compile(*run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	}
	e2e.Main("e2e", func(ctx context.Context, out io.Writer) error {
		return e2e.Run(ctx, e2e.RunOptions{Match: match, Product: *product, Cluster: *name, Out: out})
	})
}
