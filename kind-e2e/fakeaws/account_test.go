// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

func TestQuotaClasses(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"m5.large": "standard", "c7g.4xlarge": "standard", "t3.micro": "standard", "im4gn.large": "standard", "is4gen.large": "standard", "i3.large": "standard",
		"r8g.large": "standard", "g5.xlarge": "g", "g4dn.xlarge": "g", "vt1.3xlarge": "g", "p4d.24xlarge": "p", "inf2.xlarge": "inf", "trn1.2xlarge": "trn",
		"x2idn.16xlarge": "x", "dl1.24xlarge": "dl", "u-6tb1.metal": "high-memory", "f1.2xlarge": "f", "hpc7g.4xlarge": "hpc", "a1.large": "standard", "z1d.large": "standard",
	}
	for name, class := range want {
		if got := quotaClass(catalogue.Type{Name: name}); got != class {
			t.Errorf("%s counts as %s, want %s", name, got, class)
		}
	}
}

// fleetCodes launches n of the types in a zone and returns how many there are and what the errors were.
func fleetCodes(t *testing.T, s *Server, client *ec2.Client, template string, n int32, of []types.InstanceType) (int, []string) {
	t.Helper()
	out, err := client.CreateFleet(t.Context(), fleetInput(s, template, n, onDemand, of, "us-east-1a"))
	if err != nil {
		return 0, []string{errorCode(err)}
	}
	var codes []string
	for _, failure := range out.Errors {
		codes = append(codes, *failure.ErrorCode)
	}
	return len(launchedIDs(out)), codes
}

func TestLimitsOfTheAccount(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		settings  func(*Server, *Settings)
		n         int32
		types     []types.InstanceType
		want      int
		wantCodes []string
	}{
		"quota of another class": {settings: func(_ *Server, s *Settings) { s.VCPUQuota = map[string]int{"on-demand/g": 0} }, n: 3, types: onlyM5Large, want: 3},
		"quota of the class":     {settings: func(_ *Server, s *Settings) { s.VCPUQuota = map[string]int{"on-demand/standard": 4} }, n: 3, types: onlyM5Large, want: 2, wantCodes: []string{"VcpuLimitExceeded"}},
		"quota of spot":          {settings: func(_ *Server, s *Settings) { s.VCPUQuota = map[string]int{"spot": 0} }, n: 3, types: onlyM5Large, want: 3},
		"hidden type":            {settings: func(_ *Server, s *Settings) { s.HiddenTypes = []string{"m5.large"} }, n: 1, types: onlyM5Large, wantCodes: []string{"InvalidParameterValue"}},
		"few addresses": {
			settings: func(srv *Server, s *Settings) { s.FreeAddresses = map[string]int{srv.subnets[0].id: 2} },
			n:        3, types: onlyM5Large, want: 2, wantCodes: []string{"InsufficientFreeAddressesInSubnet"},
		},
		"pods take addresses too": {
			settings: func(srv *Server, s *Settings) {
				s.FreeAddresses, s.AddressesPerMachine = map[string]int{srv.subnets[0].id: 25}, 9
			},
			n: 3, types: onlyM5Large, want: 2, wantCodes: []string{"InsufficientFreeAddressesInSubnet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := start(t, Options{})
				makeTemplate(t, s, client, "template")
				settings := DefaultSettings()
				tc.settings(s, &settings)
				s.SetSettings(settings)
				got, codes := fleetCodes(t, s, client, "template", tc.n, tc.types)
				if got != tc.want || !slices.Equal(codes, tc.wantCodes) {
					t.Errorf("got %d instances and %v, want %d and %v", got, codes, tc.want, tc.wantCodes)
				}
			})
		})
	}
}

// Free addresses are told late, and come back with the machines.
func TestFreeAddressesMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		settings := DefaultSettings()
		settings.AddressLag, settings.FreeAddresses = seconds(10), map[string]int{s.subnets[0].id: 20}
		s.SetSettings(settings)
		free := func() int32 {
			out, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{s.subnets[0].id}})
			if err != nil {
				t.Fatal(err)
			}
			return *out.Subnets[0].AvailableIpAddressCount
		}
		out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 5, onDemand, onlyM5Large, "us-east-1a"))
		if err != nil {
			t.Fatal(err)
		}
		if got := free(); got == 15 {
			t.Error("the count does not lag")
		}
		time.Sleep(11 * time.Second)
		if got := free(); got != 15 {
			t.Errorf("%d are free, want 15", got)
		}
		if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: launchedIDs(out)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if got := free(); got != 20 || s.Subnets()[0].Free != 20 {
			t.Errorf("%d are free after the end, want 20", got)
		}
	})
}

func placedTemplate(t *testing.T, s *Server, client *ec2.Client, name string, data types.RequestLaunchTemplateData) {
	t.Helper()
	data.ImageId, data.UserData = aws.String(s.imageNamed(t, amd64Image)), aws.String(base64.StdEncoding.EncodeToString([]byte(nodeUserData)))
	if _, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, LaunchTemplateData: &data}); err != nil {
		t.Fatal(err)
	}
}

func TestPlacementGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		for _, strategy := range []string{"spread", "partition", "cluster"} {
			id := s.SetPlacementGroup(PlacementGroup{Name: "my-" + strategy, Strategy: strategy, Partitions: 3})
			placedTemplate(t, s, client, strategy, types.RequestLaunchTemplateData{Placement: &types.LaunchTemplatePlacementRequest{GroupId: &id}})
		}
		placedTemplate(t, s, client, "nowhere", types.RequestLaunchTemplateData{Placement: &types.LaunchTemplatePlacementRequest{GroupName: aws.String("none")}})
		cases := map[string]struct {
			types     []types.InstanceType
			n         int32
			want      int
			wantCodes []string
		}{
			"spread":    {onlyM5Large, 9, 7, []string{"InstanceLimitExceeded"}},
			"partition": {onlyM5Large, 4, 4, nil},
			"cluster":   {[]types.InstanceType{"t3.large"}, 1, 0, []string{"Unsupported"}},
			"nowhere":   {onlyM5Large, 1, 0, []string{"InvalidPlacementGroup.Unknown"}},
		}
		for template, tc := range cases {
			if got, codes := fleetCodes(t, s, client, template, tc.n, tc.types); got != tc.want || !slices.Equal(codes, tc.wantCodes) {
				t.Errorf("%s: got %d and %v, want %d and %v", template, got, codes, tc.want, tc.wantCodes)
			}
		}
		partitions := map[int32]int{}
		out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		if err != nil {
			t.Fatal(err)
		}
		for _, reservation := range out.Reservations {
			if n := reservation.Instances[0].Placement.PartitionNumber; n != nil {
				partitions[*n]++
			}
		}
		if diff := cmp.Diff(map[int32]int{1: 2, 2: 1, 3: 1}, partitions); diff != "" {
			t.Errorf("instances by partition (-want +got):\n%s", diff)
		}
	})
}

func TestReservationStates(t *testing.T) {
	t.Parallel()
	soon := func() *time.Time { at := time.Now().Add(time.Second); return &at }
	cases := map[string]struct {
		change        func(*CapacityReservation)
		open          bool // the template names none
		want          int
		wantCodes     []string
		wantLeft      int
		wantLifecycle types.InstanceLifecycleType
	}{
		"active":         {change: func(*CapacityReservation) {}, want: 1, wantLeft: 1},
		"cancelled":      {change: func(cr *CapacityReservation) { cr.State = "cancelled" }, wantCodes: []string{"InvalidCapacityReservationState.Unavailable"}, wantLeft: 2},
		"ended":          {change: func(cr *CapacityReservation) { cr.EndsAt = soon() }, wantCodes: []string{"InvalidCapacityReservationState.Unavailable"}, wantLeft: 2},
		"full":           {change: func(cr *CapacityReservation) { cr.Available = 0 }, wantCodes: []string{"ReservationCapacityExceeded"}},
		"another type":   {change: func(cr *CapacityReservation) { cr.InstanceType = "c5.large" }, wantCodes: []string{"InvalidParameterValue"}, wantLeft: 2},
		"block":          {change: func(cr *CapacityReservation) { cr.Type = "capacity-block" }, want: 1, wantLeft: 1, wantLifecycle: types.InstanceLifecycleTypeCapacityBlock},
		"open is used":   {change: func(cr *CapacityReservation) { cr.Criteria = "open" }, open: true, want: 1, wantLeft: 1},
		"targeted isn't": {change: func(*CapacityReservation) {}, open: true, want: 1, wantLeft: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := start(t, Options{})
				cr := CapacityReservation{InstanceType: "m5.large", Zone: "us-east-1a", Total: 2, Available: 2}
				tc.change(&cr)
				id := s.SetCapacityReservation(cr)
				data := types.RequestLaunchTemplateData{}
				if !tc.open {
					data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
						CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
						CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: &id},
					}
				}
				placedTemplate(t, s, client, "template", data)
				time.Sleep(2 * time.Second)
				got, codes := fleetCodes(t, s, client, "template", 1, onlyM5Large)
				if got != tc.want || !slices.Equal(codes, tc.wantCodes) || s.CapacityReservations()[0].Available != tc.wantLeft {
					t.Errorf("got %d, %v and %d left, want %d, %v and %d", got, codes, s.CapacityReservations()[0].Available, tc.want, tc.wantCodes, tc.wantLeft)
				}
				out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
				if err != nil {
					t.Fatal(err)
				}
				for _, reservation := range out.Reservations {
					if got := reservation.Instances[0].InstanceLifecycle; got != tc.wantLifecycle {
						t.Errorf("lifecycle is %q, want %q", got, tc.wantLifecycle)
					}
				}
			})
		})
	}
}

func TestImageChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		own := s.SetImage(Image{Name: "golden", Tags: map[string]string{"team": "a"}})
		find := func(in ec2.DescribeImagesInput) []string {
			out, err := client.DescribeImages(t.Context(), &in)
			if err != nil {
				return []string{errorCode(err)}
			}
			var names []string
			for _, image := range out.Images {
				names = append(names, *image.Name+" "+string(image.State))
			}
			return names
		}
		assertFound := func(what string, in ec2.DescribeImagesInput, want ...string) {
			t.Helper()
			if got := find(in); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		byTag := ec2.DescribeImagesInput{Filters: []types.Filter{filterOf("tag:team", "?")}}
		assertFound("by tag", byTag, "golden available")
		assertFound("of the account", ec2.DescribeImagesInput{Owners: []string{"self"}}, "golden available")
		assertFound("amazon's", ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{filterOf("name", "golden")}})
		s.SetImage(Image{ID: own, State: "pending"})
		assertFound("pending", byTag, "golden pending")
		s.SetImage(Image{ID: own, State: "disabled"})
		assertFound("disabled", byTag)
		assertFound("disabled, asked for", ec2.DescribeImagesInput{Owners: []string{"self"}, IncludeDisabled: aws.Bool(true)}, "golden disabled")
		s.SetImage(Image{ID: own, State: "available", DeprecatedAt: time.Now()})
		assertFound("deprecated", byTag)
		s.SetImage(Image{ID: own, State: "deregistered"})
		assertFound("deregistered", ec2.DescribeImagesInput{ImageIds: []string{own}}, "InvalidAMIID.NotFound")

		makeTemplate(t, s, client, "template")
		s.SetImage(Image{Name: amd64Image, State: "failed"})
		if _, codes := fleetCodes(t, s, client, "template", 1, onlyM5Large); !slices.Equal(codes, []string{"InvalidAMIID.Unavailable"}) {
			t.Errorf("launching from an image that failed: %v", codes)
		}
	})
}

// A new AMI is released: "recommended" tells another id, as a higher version.
func TestParametersChange(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Options{})
	client := ssm.NewFromConfig(s.AWSConfig("AKTEST"))
	get := func(name string) *ssm.GetParameterOutput {
		out, err := client.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
		if err != nil {
			t.Fatalf("getting %s: %v", name, err)
		}
		return out
	}
	for _, version := range []string{"1.34", "1.35", "1.36", "1.37"} {
		for _, path := range []string{
			"eks/optimized-ami/V/amazon-linux-2023/x86_64/standard/recommended/image_id", "eks/optimized-ami/V/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
			"eks/optimized-ami/V/amazon-linux-2023/x86_64/neuron/recommended/image_id", "eks/optimized-ami/V/amazon-linux-2023/arm64/standard/recommended/image_id",
			"eks/optimized-ami/V/amazon-linux-2023/arm64/nvidia/recommended/image_id", "bottlerocket/aws-k8s-V/x86_64/latest/image_id", "bottlerocket/aws-k8s-V/arm64/1.50.0/image_id",
			"bottlerocket/aws-k8s-V-nvidia/arm64/latest/image_id", "bottlerocket/aws-k8s-V-fips/x86_64/latest/image_id", "bottlerocket/aws-k8s-V-nvidia-fips/x86_64/1.51.0/image_id",
		} {
			get("/aws/service/" + strings.ReplaceAll(path, "V", version))
		}
	}
	const name = "/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/x86_64/standard/recommended/image_id"
	before := get(name).Parameter
	s.SetParameter(name, "ami-1")
	if after := get(name).Parameter; *after.Value != "ami-1" || after.Version != before.Version+1 {
		t.Errorf("got %s, version %d after %d", *after.Value, after.Version, before.Version)
	}
}

func TestEventsOfMachines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settings := DefaultSettings()
		settings.EventQueue, settings.DuplicateMessages = "events", true
		s, client := start(t, Options{Settings: &settings})
		makeTemplate(t, s, client, "template")
		id := launchOne(t, s, client, "template")
		time.Sleep(5 * time.Second)
		if err := s.Warn(Warning{InstanceID: id, Kind: SpotInterruption, Terminate: seconds(120)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Warn(Warning{InstanceID: id, Kind: "earthquake"}); err == nil {
			t.Error("an unknown kind was accepted")
		}
		time.Sleep(125 * time.Second)
		queues := sqs.NewFromConfig(s.AWSConfig("AKTEST"))
		url, err := queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("events")})
		if err != nil {
			t.Fatal(err)
		}
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range out.Messages {
			var event struct {
				Version    string `json:"version"`
				DetailType string `json:"detail-type"`
				Detail     struct {
					Instance string `json:"instance-id"`
					State    string `json:"state"`
				} `json:"detail"`
			}
			if err := json.Unmarshal([]byte(*m.Body), &event); err != nil || event.Version != "0" || event.Detail.Instance != id {
				t.Errorf("got %s, %v", *m.Body, err)
			}
			got = append(got, strings.TrimSpace(event.DetailType+" "+event.Detail.State))
		}
		const change = "EC2 Instance State-change Notification "
		var want []string
		for _, once := range []string{change + "pending", change + "running", "EC2 Spot Instance Interruption Warning", change + "shutting-down", change + "terminated"} {
			want = append(want, once, once)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		if counts := s.Queues()["events"]; counts != (QueueCounts{InFlight: 10}) {
			t.Errorf("got %+v", counts)
		}
		s.DeleteQueue("events")
		if _, err := queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("events")}); err == nil {
			t.Error("a deleted queue is still there")
		}
	})
}

func TestStatusChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		ill := launchOne(t, s, client, "template")
		launchOne(t, s, client, "template")
		time.Sleep(2 * time.Second)
		since := time.Now()
		s.SetHealth(ill, Health{Instance: "impaired", ImpairedSince: &since, Event: &HealthEvent{Code: "instance-retirement", NotBefore: since.Add(time.Hour)}})
		for name, filter := range map[string]types.Filter{
			"impaired": filterOf("instance-status.status", "impaired"), "event": filterOf("event.code", "instance-retirement", "instance-stop"),
		} {
			out, err := client.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{filter}})
			if err != nil || len(out.InstanceStatuses) != 1 || *out.InstanceStatuses[0].InstanceId != ill {
				t.Fatalf("%s: got %+v, %v", name, out, err)
			}
			status := out.InstanceStatuses[0]
			if detail := status.InstanceStatus.Details[0]; detail.Status != "failed" || !detail.ImpairedSince.Equal(since.Truncate(time.Millisecond)) {
				t.Errorf("detail is %+v", detail)
			}
			if len(status.Events) != 1 || status.Events[0].NotBefore == nil {
				t.Errorf("events are %+v", status.Events)
			}
		}
		if s.SetHealth("i-0", Health{}) {
			t.Error("an unknown instance has no health")
		}
	})
}

func TestSelection(t *testing.T) {
	t.Parallel()
	items := []string{"a", "b", "ab"}
	of := func(name string) facts { return facts{names: []string{name}, attrs: attributes{"name": {name}}} }
	cases := map[string]struct {
		request form
		listed  []string
		want    []string
	}{
		"all":        {want: items},
		"listed":     {listed: []string{"b"}, want: []string{"b"}},
		"filtered":   {request: form{"Filter.1.Name": "name", "Filter.1.Value.1": "a*"}, want: []string{"a", "ab"}},
		"both":       {request: form{"Filter.1.Name": "name", "Filter.1.Value.1": "a*"}, listed: []string{"b", "ab"}, want: []string{"ab"}},
		"two values": {request: form{"Filter.1.Name": "name", "Filter.1.Value.1": "a", "Filter.1.Value.2": "b"}, want: []string{"a", "b"}},
	}
	for name, tc := range cases {
		if got, err := choose(tc.request, tc.listed, items, of); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, tc.want)
		}
	}
	_, err := choose(form{"Filter.1.Name": "colour", "Filter.1.Value.1": "a"}, nil, items, of)
	if _, ok := errors.AsType[*apiError](err); !ok {
		t.Errorf("an unknown filter: %v", err)
	}
}
