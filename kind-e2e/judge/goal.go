// SPDX-License-Identifier: Apache-2.0

package judge

import "fmt"

// goalFactor is how far a wall-clock figure may miss its goal before it fails the run.
const goalFactor = 5

// Goal compares a figure with what is wanted, next to the floor of the same run.
type Goal struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Want  float64 `json:"want"`
	Unit  string  `json:"unit"`
	// Floor is what plain kube-scheduler took in the same run; 0 if there is none.
	Floor float64 `json:"floor,omitempty"`
	// AtLeast turns it around: more is better.
	AtLeast bool `json:"atLeast,omitempty"`
	// Exact is for what does not depend on the machine's speed (counts, $/h):
	// it fails at the goal and not at 5 × the goal.
	Exact bool `json:"exact,omitempty"`
}

// Met reports whether the goal itself is reached.
func (g Goal) Met() bool { return g.within(1) }

// Failed reports whether the run fails by it.
func (g Goal) Failed() bool {
	if g.Exact {
		return !g.Met()
	}
	return !g.within(goalFactor)
}

func (g Goal) within(factor float64) bool {
	const rounding = 1e-9
	if g.AtLeast {
		return g.Value*factor >= g.Want*(1-rounding)
	}
	return g.Value <= g.Want*factor*(1+rounding)
}

// wanted is the goal as text.
func (g Goal) wanted() string {
	if g.AtLeast {
		return fmt.Sprintf("≥ %.4g %s", g.Want, g.Unit)
	}
	return fmt.Sprintf("≤ %.4g %s", g.Want, g.Unit)
}

// verdict is one word for the table.
func (g Goal) verdict() string {
	switch {
	case g.Failed():
		return "FAILED"
	case g.Met():
		return "met"
	default:
		return "missed"
	}
}
