// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Dist sums up durations; all zero if there were none.
type Dist struct {
	Count                 int
	Min, Median, P90, Max time.Duration
}

// newDist sums up durations; it sorts them.
func newDist(durations []time.Duration) Dist {
	if len(durations) == 0 {
		return Dist{}
	}
	slices.Sort(durations)
	n := len(durations)
	median := durations[n/2]
	if n%2 == 0 {
		median = (durations[n/2-1] + durations[n/2]) / 2
	}
	return Dist{Count: n, Min: durations[0], Median: median, P90: durations[(n*9+9)/10-1], Max: durations[n-1]}
}

// MarshalJSON gives milliseconds.
func (d Dist) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"count": d.Count, "minMs": millis(d.Min), "medianMs": millis(d.Median), "p90Ms": millis(d.P90), "maxMs": millis(d.Max),
	})
}

// String is "median … max … of n".
func (d Dist) String() string {
	if d.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("median %s, max %s, of %d", round(d.Median), round(d.Max), d.Count)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// round keeps what is worth reading.
func round(d time.Duration) time.Duration {
	switch {
	case d.Abs() >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d.Abs() >= time.Second:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(100 * time.Microsecond)
	}
}
