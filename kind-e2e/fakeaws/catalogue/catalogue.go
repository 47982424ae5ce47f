// SPDX-License-Identifier: Apache-2.0

// Package catalogue knows which EC2 instance types exist in us-east-1, what they consist of and
// what they cost. It decides prices and pod limits from published tables; it must not know about
// requests, instances or clusters. The fake endpoint and its machines call it.
package catalogue

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
)

//go:embed ec2-us-east-1.jsonl.gz
var compressed []byte

// Type is one instance type. Memory is in MiB, NVMe in GB (decimal), bandwidth in Mbit/s, the
// clock in MHz and prices in USD per hour. A zero means that the type has none of it.
type Type struct {
	Name                    string            `json:"type"`
	Arch                    string            `json:"arch"` // amd64 or arm64
	VCPU                    int               `json:"vcpu"`
	MemoryMiB               int               `json:"memoryMiB"`
	OnDemandUSD             float64           `json:"onDemandUSD"`
	ENIs                    int               `json:"enis"`
	IPv4PerENI              int               `json:"ipv4PerEni"`
	Hypervisor              string            `json:"hypervisor"`
	BareMetal               bool              `json:"bareMetal"`
	CPUManufacturer         string            `json:"cpuManufacturer"`
	ClockMHz                int               `json:"clockMHz"`
	EBSMbps                 int               `json:"ebsMbps"`
	NetworkMbps             int               `json:"networkMbps"`
	NVMeGB                  int               `json:"nvmeGB"`
	GPUs                    int               `json:"gpus"`
	GPUManufacturer         string            `json:"gpuManufacturer"`
	GPUName                 string            `json:"gpuName"`
	GPUMemoryMiB            int               `json:"gpuMemoryMiB"`
	Accelerators            int               `json:"accelerators"`
	AcceleratorName         string            `json:"acceleratorName"`
	AcceleratorManufacturer string            `json:"acceleratorManufacturer"`
	EncryptionInTransit     bool              `json:"encryptionInTransit"`
	Flex                    bool              `json:"flex"`
	BranchENIs              int               `json:"branchEnis"`
	EFA                     int               `json:"efa"`
	NetworkCards            int               `json:"networkCards"`
	DefaultCardENIs         int               `json:"defaultCardEnis"`
	Resources               map[string]string `json:"resources"`
}

// ENIPods is the pod limit that the VPC CNI's addresses impose: (addresses − 1) of every interface
// of the default network card, plus two host-network pods.
func (t Type) ENIPods() int {
	if t.DefaultCardENIs <= 0 {
		return 0
	}
	return t.DefaultCardENIs*(t.IPv4PerENI-1) + 2
}

// Family is the part of the name before the dot.
func (t Type) Family() string {
	family, _, _ := strings.Cut(t.Name, ".")
	return family
}

// SpotUSD is the price in USD per hour of spot capacity in one zone: between 28 and 46 per cent of
// the on-demand price, the same in every run.
func (t Type) SpotUSD(zone string) float64 {
	share := 0.28 + 0.18*fraction(t.Name+"/"+zone)
	return math.Round(t.OnDemandUSD*share*1e4) / 1e4
}

// SpotDepth is how much spare spot capacity the pool has, between 0 (almost none) and 1 (plenty).
func (t Type) SpotDepth(zone string) float64 { return fraction("depth/" + t.Name + "/" + zone) }

func fraction(key string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash never fails to write
	x := h.Sum64()              // the finish of MurmurHash3: FNV alone leaves keys that differ in the last byte close together
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>40) / float64(1<<24)
}

// Types returns the whole catalogue, ordered by name. Callers must not change it.
var Types = sync.OnceValue(func() []Type {
	types, err := read(compressed)
	if err != nil {
		panic(fmt.Sprintf("the embedded instance type catalogue is damaged: %v", err))
	}
	return types
})

var byName = sync.OnceValue(func() map[string]Type {
	index := map[string]Type{}
	for _, t := range Types() {
		index[t.Name] = t
	}
	return index
})

// Get finds a type by name.
func Get(name string) (Type, bool) {
	t, ok := byName()[name]
	return t, ok
}

func read(data []byte) ([]Type, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	var types []Type
	for decoder := json.NewDecoder(r); ; {
		var t Type
		switch err := decoder.Decode(&t); {
		case errors.Is(err, io.EOF):
			slices.SortFunc(types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
			return types, nil
		case err != nil:
			return nil, fmt.Errorf("reading type %d: %w", len(types)+1, err)
		}
		types = append(types, t)
	}
}
