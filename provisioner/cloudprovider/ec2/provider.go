// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/pricefile"
)

const (
	// DefaultVMMemoryOverhead is the share of the advertised memory that a guest does not see.
	DefaultVMMemoryOverhead = 0.075

	// callTimeout bounds one call with its retries and the wait for its turn; a paginated read gets it per page.
	callTimeout = 20 * time.Second
	// sendTimeout bounds one attempt of a call, fleetTimeout one of CreateFleet, which may take long and can be
	// repeated with its token: an answer half a minute late is still used.
	sendTimeout  = 10 * time.Second
	fleetTimeout = 45 * time.Second
	// launchTimeout bounds all calls of a launch and the waits between them.
	launchTimeout = 75 * time.Second
)

// Options are fixed for the life of a Provider.
type Options struct {
	// ClusterName is the EKS cluster's name; it is in every tag. Required.
	ClusterName string
	// AWS has region, credentials, HTTP client and perhaps an endpoint; see LoadConfig. Required.
	AWS aws.Config

	// What is empty of these is read from EKS. ClusterCA is base64 of a PEM bundle, KubernetesVersion is
	// major.minor.
	ClusterEndpoint, ClusterCA, ServiceCIDR, KubernetesVersion string

	// VMMemoryOverhead is the share of the advertised memory that is not counted on; nil is
	// DefaultVMMemoryOverhead.
	VMMemoryOverhead *float64
	// ReservedENIs are network interfaces that pods do not get.
	ReservedENIs int
	// IsolatedVPC says that only services with an endpoint in the VPC can be reached: the price list has none.
	IsolatedVPC bool
	// Leading is asked right before a call that changes something is sent; an error keeps it from being sent. nil: never.
	Leading func() error
	// Prices are the operator's rules; SetPrices replaces them.
	Prices *pricefile.File
}

// Provider implements cloudprovider.Interface.
type Provider struct {
	opts           Options
	region         string
	memoryOverhead float64
	endpoints      map[string]string // by service, for messages

	limiter *limiter // of all calls

	ec2     EC2API
	eks     EKSAPI
	iam     IAMAPI
	ssm     SSMAPI
	pricing PricingAPI
	sts     STSAPI

	describing  batch[cloudprovider.Instance]
	terminating batch[ec2types.InstanceStateName]

	refreshing gate // held while the cluster's facts and the catalogue are read

	mu          sync.Mutex // guards what follows; never held during a call
	cluster     *clusterFacts
	catalogue   *catalogue
	parameters  map[string]parameter
	gone        map[string]time.Time // images that could not be launched, by id
	classes     map[string]*class    // by name
	unavailable *unavailable
	addresses   *addressBook
	templates   map[string]*template // by name
	choices     map[string]*choice   // by token
	faults      launchFaults
	priceFile   *pricefile.File

	said sayings // what was logged about parts of the catalogue
	// priceReads gets the price list that is being read, nil if none is; guarded by refreshing.
	priceReads chan priceRead
	priceWait  time.Duration
}

var _ cloudprovider.Interface = (*Provider)(nil)

// LoadConfig reads region, credentials and endpoint the way every AWS SDK does (environment, files, the pod's or
// the machine's role). It makes no call unless a file asks for one. A missing region is an error.
func LoadConfig(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithAppID("jit-scheduler"))
	if err != nil {
		return aws.Config{}, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("reading the AWS configuration: no region, set AWS_REGION")
	}
	return cfg, nil
}

// New returns a Provider and does no I/O. All services share the options' credentials.
func New(opts Options) *Provider {
	overhead := DefaultVMMemoryOverhead
	if opts.VMMemoryOverhead != nil {
		overhead = *opts.VMMemoryOverhead
	}
	limiter := newLimiter(opts.Leading)
	opts.AWS.APIOptions = append(slices.Clone(opts.AWS.APIOptions), limiter.limited)
	compute, cluster, identity := ec2.NewFromConfig(opts.AWS), eks.NewFromConfig(opts.AWS), iam.NewFromConfig(opts.AWS)
	region := opts.AWS.Region
	endpoint := func(base *string, host string) string {
		if base != nil {
			return *base
		}
		return "https://" + host
	}
	p := &Provider{
		opts: opts, region: region, memoryOverhead: overhead,
		endpoints: map[string]string{
			"ec2": endpoint(compute.Options().BaseEndpoint, "ec2."+region+".amazonaws.com"),
			"eks": endpoint(cluster.Options().BaseEndpoint, "eks."+region+".amazonaws.com"),
		},
		limiter: limiter,
		ec2:     compute, eks: cluster, iam: identity, ssm: ssm.NewFromConfig(opts.AWS),
		pricing: pricing.NewFromConfig(opts.AWS, func(o *pricing.Options) { o.Region = cmp.Or(pricingRegion(region), region) }),
		sts:     sts.NewFromConfig(opts.AWS),

		refreshing:  newGate(),
		parameters:  map[string]parameter{},
		gone:        map[string]time.Time{},
		classes:     map[string]*class{},
		unavailable: newUnavailable(),
		addresses:   newAddressBook(),
		templates:   map[string]*template{},
		choices:     map[string]*choice{},
		priceFile:   opts.Prices,
		priceWait:   onDemandWait,
		faults:      launchFaults{byClass: map[string]launchFault{}},
	}
	p.describing.call, p.describing.alone = p.describeInstances, aboutOne
	p.terminating.call, p.terminating.alone = p.terminateInstances, aboutOne
	return p
}

// call gives one call its deadline and names it in the error.
func call[In, Out, Opts any](ctx context.Context, what string, f func(context.Context, In, ...func(*Opts)) (Out, error), in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := f(ctx, in)
	if err != nil {
		return out, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}
