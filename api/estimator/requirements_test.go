package estimator_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// field is one field of a message, as it stands on the wire.
func field(number protowire.Number, parts ...[]byte) []byte {
	out := protowire.AppendTag(nil, number, protowire.BytesType)
	return protowire.AppendBytes(out, slices.Concat(parts...))
}

func text(number protowire.Number, value string) []byte { return field(number, []byte(value)) }

func varint(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

// What follows is put together from the numbers that Karmada's messages have, and from
// those of Kubernetes' types, without our own code: any client's bytes look so.
var (
	claim = slices.Concat(
		field(2, text(1, "disk"), text(2, "ssd")),
		field(4, field(1, field(1, text(1, "zone"), text(2, "In"), text(3, "a")))),
		field(5, text(1, "dedicated"), text(2, "Equal"), text(3, "x"), text(4, "NoSchedule")),
	)
	requirements = slices.Concat(field(1, claim), text(3, "shop"), text(4, "high"), field(5, text(1, "cpu"), field(2, text(1, "1500m"))))
	component    = slices.Concat(text(1, "worker"), field(2, field(1, claim), text(3, "high"), field(4, text(1, "cpu"), field(2, text(1, "1500m")))), varint(3, 2))
)

// TestTheBytesOfOtherClients reads what they send, and what they do not send any more.
func TestTheBytesOfOtherClients(t *testing.T) {
	node := &workv1alpha2.NodeClaim{
		NodeSelector: map[string]string{"disk": "ssd"},
		HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
		}}}},
		Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "x", Effect: corev1.TaintEffectNoSchedule}},
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
	replica := &workv1alpha2.ReplicaRequirements{NodeClaim: node, ResourceRequest: cpu, Namespace: "shop", PriorityClassName: "high"}
	set := []workv1alpha2.Component{{Name: "worker", Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
		NodeClaim: node, ResourceRequest: cpu, PriorityClassName: "high",
	}}}
	type message struct {
		Cluster, Namespace string
		Need               *workv1alpha2.ReplicaRequirements
		Set, Assumed       []workv1alpha2.Component
		AssumedIn          string
	}
	for name, tc := range map[string]struct {
		bytes []byte
		sets  bool
		want  message
	}{
		"replicas": {
			slices.Concat(text(1, "m1"), field(2, requirements), field(3, text(1, "jobs"), field(2, component))), false,
			message{Cluster: "m1", Need: replica, Assumed: set, AssumedIn: "jobs"},
		},
		"replicas that need nothing": {text(1, "m1"), false, message{Cluster: "m1"}},
		"replicas with the fields of older releases, which mean nothing": {
			slices.Concat(text(1, "m1"), field(2, field(1, text(1, "x"), text(3, "y")), text(2, "z"), text(3, "shop"))), false,
			message{Cluster: "m1", Need: &workv1alpha2.ReplicaRequirements{NodeClaim: &workv1alpha2.NodeClaim{}, Namespace: "shop"}},
		},
		"sets": {
			slices.Concat(text(1, "m1"), field(2, component), text(3, "shop"), field(4, text(1, "jobs"), field(2, component))), true,
			message{Cluster: "m1", Namespace: "shop", Set: set, Assumed: set, AssumedIn: "jobs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got message
			var assumed []*estimator.AssumedWorkload
			var err error
			if tc.sets {
				var request estimator.MaxAvailableComponentSetsRequest
				if err := proto.Unmarshal(tc.bytes, &request); err != nil {
					t.Fatal(err)
				}
				got.Cluster, got.Namespace, assumed = request.Cluster, request.Namespace, request.AssumedWorkloads
				got.Set, err = estimator.ComponentsOf(request.Components)
			} else {
				var request estimator.MaxAvailableReplicasRequest
				if err := proto.Unmarshal(tc.bytes, &request); err != nil {
					t.Fatal(err)
				}
				got.Cluster, assumed = request.Cluster, request.AssumedWorkloads
				got.Need, err = request.ReplicaRequirements.Need()
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range assumed {
				got.AssumedIn = a.Namespace
				if got.Assumed, err = estimator.ComponentsOf(a.Components); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOurBytes: what we send is what other servers read.
func TestOurBytes(t *testing.T) {
	need := &estimator.ReplicaRequirements{}
	if err := proto.Unmarshal(requirements, need); err != nil {
		t.Fatal(err)
	}
	part := &estimator.Component{}
	if err := proto.Unmarshal(component, part); err != nil {
		t.Fatal(err)
	}
	asked, err := need.Need()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := estimator.ComponentsOf([]*estimator.Component{part})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := estimator.NewReplicaRequirements(asked)
	if err != nil {
		t.Fatal(err)
	}
	ourParts, err := estimator.NewComponents(parts)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		message proto.Message
		want    []byte
	}{
		"replicas":       {&estimator.MaxAvailableReplicasRequest{Cluster: "m1", ReplicaRequirements: ours}, slices.Concat(text(1, "m1"), field(2, requirements))},
		"sets":           {&estimator.MaxAvailableComponentSetsRequest{Cluster: "m1", Components: ourParts, Namespace: "shop"}, slices.Concat(text(1, "m1"), field(2, component), text(3, "shop"))},
		"unschedulable":  {&estimator.UnschedulableReplicasRequest{Cluster: "m1", Resource: &estimator.ObjectReference{ApiVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UnschedulableThreshold: 5}, slices.Concat(text(1, "m1"), field(2, text(1, "apps/v1"), text(2, "Deployment"), text(3, "shop"), text(4, "web")), varint(3, 5))},
		"answer":         {&estimator.MaxAvailableReplicasResponse{MaxReplicas: 7}, varint(1, 7)},
		"answer of sets": {&estimator.MaxAvailableComponentSetsResponse{MaxSets: 7}, varint(1, 7)},
		"answer of none": {&estimator.UnschedulableReplicasResponse{UnschedulableReplicas: 7}, varint(1, 7)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := proto.MarshalOptions{Deterministic: true}.Marshal(tc.message)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoTerm: an affinity that no node meets is not taken for none.
func TestNoTerm(t *testing.T) {
	sent, err := estimator.NewReplicaRequirements(&workv1alpha2.ReplicaRequirements{NodeClaim: &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{}}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := sent.Need()
	if err != nil {
		t.Fatal(err)
	}
	want := &workv1alpha2.ReplicaRequirements{NodeClaim: &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}}}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestBytesThatAreNotWhatTheyShouldBe(t *testing.T) {
	quantity := func(bytes ...[]byte) []byte { return field(5, text(1, "cpu"), field(2, bytes...)) }
	for name, tc := range map[string]struct {
		bytes  []byte
		absurd bool
	}{
		"a quantity that is none":                   {bytes: quantity(text(1, "much"))},
		"a quantity with a million zeros":           {quantity(text(1, "1e1000000")), true},
		"a quantity with a million zeros behind it": {quantity(text(1, "1E-1000000")), true},
		"such a quantity before one that is none":   {quantity(text(1, "1e1000000"), text(1, "1")), true},
		"a quantity as long as a book":              {quantity(text(1, string(slices.Repeat([]byte("9"), 1000)))), true},
		"a node affinity that is cut off":           {bytes: field(1, field(4, []byte{0x0a, 0x09}))},
		"a toleration of another type":              {bytes: field(1, field(5, varint(1, 7)))},
	} {
		t.Run(name, func(t *testing.T) {
			var message estimator.ReplicaRequirements
			if err := proto.Unmarshal(tc.bytes, &message); err != nil {
				t.Fatal(err)
			}
			need, err := message.Need()
			if err == nil || errors.Is(err, estimator.ErrQuantity) != tc.absurd {
				t.Errorf("read %v, error %v", need, err)
			}
		})
	}
}

// FuzzNeed: whatever comes is refused or read, and what is read can be sent and read again.
func FuzzNeed(f *testing.F) {
	f.Add(requirements)
	f.Add(field(5, text(1, "cpu"), field(2, text(1, "1e999"))))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var message estimator.ReplicaRequirements
		if proto.Unmarshal(bytes, &message) != nil {
			return
		}
		need, err := message.Need()
		if err != nil {
			return
		}
		again, err := estimator.NewReplicaRequirements(need)
		if err != nil {
			t.Fatalf("%v cannot be sent: %v", need, err)
		}
		same, err := again.Need()
		if err != nil {
			if errors.Is(err, estimator.ErrQuantity) {
				return // in the form that Kubernetes prefers it is longer
			}
			t.Fatalf("%v is not read: %v", again, err)
		}
		if c := need.NodeClaim; c != nil && c.HardNodeAffinity != nil && len(c.HardNodeAffinity.NodeSelectorTerms) == 0 {
			c.HardNodeAffinity.NodeSelectorTerms = make([]corev1.NodeSelectorTerm, 1) // which matches no node, either
		}
		if diff := cmp.Diff(need, same, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}
