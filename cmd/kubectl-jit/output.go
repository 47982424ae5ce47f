// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// typeView is an instance type as it is printed.
type typeView struct {
	Name        string              `json:"name"`
	Labels      map[string][]string `json:"labels"`
	Capacity    map[string]string   `json:"capacity"`
	Overhead    map[string]string   `json:"overhead"`
	Allocatable map[string]string   `json:"allocatable"`
	Offerings   []offeringView      `json:"offerings"`
}

type offeringView struct {
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	USDPerHour   float64 `json:"usdPerHour"`
	Available    bool    `json:"available"`
}

func viewOf(t *cloudprovider.InstanceType) typeView {
	view := typeView{
		Name: t.Name, Labels: map[string][]string{},
		Capacity: texts(t.Capacity), Overhead: texts(t.Overhead), Allocatable: texts(t.Allocatable),
		Offerings: []offeringView{},
	}
	add := func(key, value string) {
		if value != "" && !slices.Contains(view.Labels[key], value) {
			view.Labels[key] = append(view.Labels[key], value)
		}
	}
	for key, value := range t.Labels {
		add(key, value)
	}
	for _, o := range t.Offerings {
		for key, value := range o.Labels() {
			add(key, value)
		}
		view.Offerings = append(view.Offerings, offeringView{o.Zone, o.CapacityType, o.Price, o.Available})
	}
	for _, values := range view.Labels {
		slices.Sort(values)
	}
	return view
}

// texts are the canonical forms of the quantities.
func texts(list v1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

// writeJSON writes one type a line.
func writeJSON(w io.Writer, types []*cloudprovider.InstanceType) error {
	var b strings.Builder
	b.WriteString("[")
	for i, t := range types {
		text, err := json.Marshal(viewOf(t))
		if err != nil {
			return fmt.Errorf("writing %s: %w", t.Name, err)
		}
		b.WriteString(map[bool]string{true: "\n", false: ",\n"}[i == 0])
		b.Write(text)
	}
	b.WriteString("\n]\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// mainResources are those that have a column of their own.
var mainResources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods}

// writeTable writes what pods get of each type.
func writeTable(w io.Writer, notes []string, types []*cloudprovider.InstanceType) error {
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "# %s\n", note); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// A tabwriter keeps errors until it is flushed.
	_, _ = fmt.Fprintln(table, "NAME\tARCH\tCPU\tMEMORY\tSTORAGE\tPODS\tON-DEMAND\tSPOT\tZONES\tOTHER")
	for _, t := range types {
		cells := []string{t.Name, t.Labels[v1.LabelArchStable]}
		for _, name := range mainResources {
			quantity := t.Allocatable[name]
			cells = append(cells, quantity.String())
		}
		cells = append(cells, cheapest(t, karpv1.CapacityTypeOnDemand), cheapest(t, karpv1.CapacityTypeSpot), availableZones(t), others(t))
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// cheapest is the least price in USD per hour at which the type can be had.
func cheapest(t *cloudprovider.InstanceType, capacityType string) string {
	best, found := 0.0, false
	for _, o := range t.Offerings {
		if o.CapacityType == capacityType && o.Available && (!found || o.Price < best) {
			best, found = o.Price, true
		}
	}
	if !found {
		return "-"
	}
	return strconv.FormatFloat(best, 'f', -1, 64)
}

func availableZones(t *cloudprovider.InstanceType) string {
	zones := map[string]bool{}
	for _, o := range t.Offerings {
		if o.Available {
			zones[o.Zone] = true
		}
	}
	if len(zones) == 0 {
		return "-"
	}
	return strings.Join(slices.Sorted(maps.Keys(zones)), ",")
}

func others(t *cloudprovider.InstanceType) string {
	var list []string
	for name, quantity := range t.Allocatable {
		if !slices.Contains(mainResources, name) {
			list = append(list, string(name)+"="+quantity.String())
		}
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
