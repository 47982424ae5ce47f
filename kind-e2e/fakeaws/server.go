// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
)

// ClusterInfo is how a machine finds its API server: endpoint URL and CA bundle (PEM), both from
// user data.
type ClusterInfo struct {
	Name     string
	Endpoint string
	CA       []byte
}

// Options are fixed for the life of a Server. The zero value is the account, region and cluster
// that the demo uses, without machines that join anything.
type Options struct {
	Region         string       // us-east-1 if empty
	AccountID      string       // 111122223333 if empty
	ClusterName    string       // demo if empty; also the value of the discovery tag
	ClusterVersion string       // Kubernetes minor version, 1.37 if empty
	Endpoint       string       // of the API server, as EKS DescribeCluster tells it
	CA             []byte       // PEM, likewise
	ServiceCIDR    string       // 10.96.0.0/16 if empty
	Subnets        []SubnetSpec // one /20 per zone if empty
	Roles          []string     // IAM roles that exist; nil means every name does
	Settings       *Settings    // DefaultSettings if nil
	Seed           uint64       // of ids and of faults with a probability

	// NodeClient returns a client with the identity of the kubelet of nodeName. Without it, machines
	// boot and join nothing.
	NodeClient func(ctx context.Context, cluster ClusterInfo, nodeName string) (kubernetes.Interface, error)
	// CloudControllerClient returns a client that may delete Nodes, as the cloud controller of the
	// cluster. NodeClient with an empty name serves if it is nil.
	CloudControllerClient func(ctx context.Context, cluster ClusterInfo) (kubernetes.Interface, error)
	// Logger gets what machines and the server do; nil discards it.
	Logger *slog.Logger
}

// Server is the fake endpoint. Use New.
type Server struct {
	opts   Options
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // machines and in-process calls

	mu       sync.Mutex // guards what follows; never held while waiting
	closed   bool
	random   *rand.Rand
	settings Settings
	calls    []*Call
	faults   []*Rule
	faultSeq int

	vpc        string
	subnets    []*subnet
	groups     []securityGroup
	images     []image
	parameters map[string]parameter

	templates      map[string]*launchTemplate // by id
	templateTokens map[string]tokenReply[*launchTemplate]
	fleetTokens    map[string]tokenReply[*createFleetReply]
	instances      map[string]*instance
	launched       []*instance // in order of launch, also those that EC2 has forgotten

	profiles     map[string]*instanceProfile
	queues       map[string]*queue
	reservations []*CapacityReservation
	placements   []*PlacementGroup
	buckets      map[string]*bucket
}

// New returns a server with the network, images and catalogue of the demo account. It starts
// nothing by itself; Close ends what calls start.
func New(opts Options) *Server {
	opts = opts.withDefaults()
	settings := DefaultSettings()
	if opts.Settings != nil {
		settings = opts.Settings.clone()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		opts: opts, log: opts.Logger, ctx: ctx, cancel: cancel,
		random:         rand.New(rand.NewPCG(opts.Seed, 0x6a6974)),
		settings:       settings,
		templates:      map[string]*launchTemplate{},
		templateTokens: map[string]tokenReply[*launchTemplate]{},
		fleetTokens:    map[string]tokenReply[*createFleetReply]{},
		instances:      map[string]*instance{},
		profiles:       map[string]*instanceProfile{},
		queues:         map[string]*queue{},
		buckets:        map[string]*bucket{},
	}
	s.buildNetwork()
	s.buildImages()
	return s
}

func (o Options) withDefaults() Options {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&o.Region, "us-east-1")
	set(&o.AccountID, "111122223333")
	set(&o.ClusterName, "demo")
	set(&o.ClusterVersion, "1.37")
	set(&o.Endpoint, "https://127.0.0.1:6443")
	set(&o.ServiceCIDR, "10.96.0.0/16")
	if len(o.Subnets) == 0 {
		o.Subnets = defaultSubnets(o.Region)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Close stops all machines and calls and waits for them. Calls that come later are reset.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}

// spawn runs f until it returns; Close waits for it. It reports false, and runs nothing, after Close.
func (s *Server) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spawnLocked(f)
}

func (s *Server) spawnLocked(f func()) bool {
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

// Settings returns the current settings.
func (s *Server) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings.clone()
}

// SetSettings replaces the settings.
func (s *Server) SetSettings(settings Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = settings.clone()
}

// sleep waits for d or until ctx ends, and says whether the whole time passed.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// hexID returns an identifier like those of EC2: the prefix and 17 hexadecimal digits.
func (s *Server) hexID(prefix string) string {
	const digits = "0123456789abcdef"
	id := []byte(prefix)
	for range 17 {
		id = append(id, digits[s.random.IntN(len(digits))])
	}
	return string(id)
}
