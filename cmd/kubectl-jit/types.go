// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
)

const (
	clusterTimeout = 15 * time.Second
	awsTimeout     = 2 * time.Minute
	defaultRegion  = "us-east-1"
)

var defaultZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

// typesOptions are the flags of kubectl jit types.
type typesOptions struct {
	nodeClass, catalog, region, output string
	zones                              []string
	kubeconfig, context                string
}

func newTypesCommand(w world) *cobra.Command {
	o := &typesOptions{}
	cmd := &cobra.Command{
		Use:   "types [--nodeclass FILE|NAME] [--catalog FILE] [--region R] [--zones a,b,c] [-o table|json]",
		Short: "List the instance types as a NodeClass would launch them",
		Long: `List the instance types as a NodeClass would launch them: labels, capacity, overhead, allocatable, and where they
are sold for how much. The numbers are those that jit-scheduler plans with, but for what it has learned from machines.

The types are those that AWS sells in the region (described with your credentials), or those of a catalogue file: one
JSON object a line. A NodeClass from a file needs to say only what differs from the defaults. Zones are those of
--zones, else of the NodeClass's subnets, else all of the region; of a catalogue file, us-east-1a, b and c.
A type that the NodeClass cannot launch is listed without an available offering. Labels with an empty value (the
hypervisor of bare metal) are not listed.`,
		Example: `  kubectl jit types --nodeclass default
  kubectl jit types --nodeclass class.yaml --catalog types.jsonl --zones us-east-1a -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return badInput("types takes no argument, there is %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), w) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.nodeClass, "nodeclass", "", "file with an EC2NodeClass (- for standard input), or the name of one in the cluster; none: AL2023 with default settings")
	flags.StringVar(&o.catalog, "catalog", "", "file with instance types, instead of AWS (- for standard input)")
	flags.StringVar(&o.region, "region", "", "region (default: the AWS SDK's own; with --catalog that of the zones)")
	flags.StringSliceVar(&o.zones, "zones", nil, "zones in which the types are wanted")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file, for a NodeClass in the cluster")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig")
	return cmd
}

func (o *typesOptions) check() error {
	if o.output != "table" && o.output != "json" {
		return badInput("--output %q: is not table or json", o.output)
	}
	if o.catalog == "-" && o.nodeClass == "-" {
		return badInput("--catalog and --nodeclass cannot both be standard input")
	}
	for i, zone := range o.zones {
		if zone == "" || len(validation.IsValidLabelValue(zone)) > 0 {
			return badInput("--zones: %q is not the name of a zone", zone)
		}
		if slices.Contains(o.zones[:i], zone) {
			return badInput("--zones: %s is there twice", zone)
		}
	}
	return nil
}

func (o *typesOptions) run(ctx context.Context, w world) error {
	if err := o.check(); err != nil {
		return err
	}
	class, notes, err := o.class(ctx, w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, awsTimeout)
	defer cancel()
	listing, err := o.listing(ctx, w, class, func(note string) { notes = append(notes, note) })
	if err != nil {
		return err
	}
	zones, err := o.zonesFor(ctx, listing, class)
	if err != nil {
		return err
	}
	types, err := listing.InstanceTypes(class.EC2NodeClass, zones)
	if err != nil {
		return class.blame(err)
	}
	if o.output == "json" {
		for _, note := range notes {
			if _, err := fmt.Fprintln(w.err, "note: "+note); err != nil {
				return err
			}
		}
		return writeJSON(w.out, types)
	}
	return writeTable(w.out, notes, types)
}

// class is the NodeClass that was asked for, and what is to be said of it.
func (o *typesOptions) class(ctx context.Context, w world) (*nodeClass, []string, error) {
	if o.nodeClass == "" {
		return defaultClass(), []string{"no --nodeclass: AL2023 with default settings"}, nil
	}
	if isFile(o.nodeClass) {
		class, err := readClassFile(ctx, o.nodeClass, w.in)
		return class, nil, err
	}
	client, err := w.cluster(o.kubeconfig, o.context)
	if err != nil {
		return nil, nil, badInput("--nodeclass %s: no such file, and no cluster to look for an %s of that name: %v", o.nodeClass, classKind, err)
	}
	class, err := readClusterClass(ctx, client, o.nodeClass)
	return class, nil, err
}

// listing is what is sold. A file has all its types in all the zones.
func (o *typesOptions) listing(ctx context.Context, w world, class *nodeClass, note func(string)) (*ec2.Listing, error) {
	if o.catalog == "" {
		cfg, err := w.aws(ctx, o.region)
		if err != nil {
			return nil, badInput("%v, or --region or --catalog", err)
		}
		return ec2.ReadListing(ctx, cfg)
	}
	opened, file, err := openInput(o.catalog, w.in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	zones := o.fileZones(class)
	listing, err := ec2.ParseListing(opened, o.fileRegion(zones), zones, func(line int, field string) {
		note(fmt.Sprintf("%s: line %d: %s: not known, ignored", file, line, field))
	})
	if err != nil {
		return nil, badInput("%s: %v", file, err)
	}
	return listing, nil
}

// fileZones are those in which a catalogue file's types are taken to be sold.
func (o *typesOptions) fileZones(class *nodeClass) []string {
	if len(o.zones) > 0 {
		return o.zones
	}
	var zones []string
	for _, subnet := range class.Status.Subnets {
		zones = append(zones, subnet.Zone)
	}
	if slices.Sort(zones); len(zones) > 0 {
		return slices.Compact(zones)
	}
	return defaultZones
}

// fileRegion is the zones' own without their last letter, as zones of a region are named.
func (o *typesOptions) fileRegion(zones []string) string {
	if o.region != "" {
		return o.region
	}
	if region := strings.TrimRight(zones[0], "abcdefghijklmnopqrstuvwxyz"); region != "" && region != zones[0] {
		return region
	}
	return defaultRegion
}

// zonesFor are those that are wanted, with their ids if the class has them.
func (o *typesOptions) zonesFor(ctx context.Context, listing *ec2.Listing, class *nodeClass) ([]ec2.Zone, error) {
	wanted := o.zones
	if o.catalog != "" {
		wanted = o.fileZones(class)
	}
	if len(wanted) == 0 && o.nodeClass == "" {
		return listing.Zones(), nil
	}
	if len(wanted) == 0 {
		zones, err := listing.ZonesOf(ctx, class.EC2NodeClass)
		if errors.Is(err, ec2.ErrNoSubnet) {
			return nil, class.blame(err)
		}
		return zones, err
	}
	var zones []ec2.Zone
	for _, name := range wanted {
		zone := ec2.Zone{Name: name}
		for _, subnet := range class.Status.Subnets {
			if subnet.Zone == name {
				zone.ID = subnet.ZoneID
			}
		}
		zones = append(zones, zone)
	}
	return zones, nil
}
