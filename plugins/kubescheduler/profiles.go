// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// CheckProfiles refuses profiles in which pods could go to planned or held nodes: those that lack NodeProvisioning at
// a point that it needs, run preemption before it, or run NodeUnschedulable beside it (which would keep paired pods
// off the node held for them).
func CheckProfiles(profiles profile.Map) error {
	var errs []error
	for name, p := range profiles {
		for _, problem := range problems(p.ListPlugins()) {
			errs = append(errs, fmt.Errorf("profile %q: %s", name, problem))
		}
	}
	slices.SortFunc(errs, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
	return utilerrors.NewAggregate(errs)
}

func problems(p *config.Plugins) []string {
	var out []string
	for _, point := range []struct {
		name string
		set  config.PluginSet
	}{{"preFilter", p.PreFilter}, {"filter", p.Filter}, {"postFilter", p.PostFilter}, {"reserve", p.Reserve}} {
		if index(point.set, nodeprovisioning.Name) < 0 {
			out = append(out, fmt.Sprintf("plugins.%s.enabled: %s is missing", point.name, nodeprovisioning.Name))
		}
	}
	ours, preemption := index(p.PostFilter, nodeprovisioning.Name), index(p.PostFilter, names.DefaultPreemption)
	if preemption >= 0 && preemption < ours {
		out = append(out, fmt.Sprintf("plugins.postFilter.enabled: %s must come before %s", nodeprovisioning.Name, names.DefaultPreemption))
	}
	if index(p.Filter, names.NodeUnschedulable) >= 0 {
		out = append(out, fmt.Sprintf("plugins.filter.enabled: %s must be disabled, %s does its work", names.NodeUnschedulable, nodeprovisioning.Name))
	}
	return out
}

func index(s config.PluginSet, name string) int {
	return slices.IndexFunc(s.Enabled, func(p config.Plugin) bool { return p.Name == name })
}
