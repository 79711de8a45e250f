package estimator

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ErrQuantity says that a message holds a quantity that nobody writes: longer than any that
// is meant, or with so many zeros that to reckon with it is an attack.
var ErrQuantity = errors.New("the quantity is absurd")

// What a quantity is at most. Kubernetes' own limits lie far below.
const (
	maxQuantityBytes = 64
	maxExponent      = 3 // digits, with its sign
)

// NewReplicaRequirements returns what one replica needs as a message; nil where need is nil.
func NewReplicaRequirements(need *workv1alpha2.ReplicaRequirements) (*ReplicaRequirements, error) {
	if need == nil {
		return nil, nil
	}
	claim, err := newNodeClaim(need.NodeClaim)
	if err != nil {
		return nil, err
	}
	requests, err := newRequests(need.ResourceRequest)
	if err != nil {
		return nil, err
	}
	return &ReplicaRequirements{
		NodeClaim: claim, Namespace: need.Namespace, PriorityClassName: need.PriorityClassName, ResourceRequestBytes: requests,
	}, nil
}

// NewComponents returns the parts of one set as messages.
func NewComponents(components []workv1alpha2.Component) ([]*Component, error) {
	out := make([]*Component, 0, len(components))
	for i := range components {
		c := &components[i]
		part := &Component{Name: c.Name, Replicas: c.Replicas}
		if need := c.ReplicaRequirements; need != nil {
			claim, err := newNodeClaim(need.NodeClaim)
			if err != nil {
				return nil, fmt.Errorf("component %s: %w", c.Name, err)
			}
			requests, err := newRequests(need.ResourceRequest)
			if err != nil {
				return nil, fmt.Errorf("component %s: %w", c.Name, err)
			}
			part.ReplicaRequirements = &ComponentReplicaRequirements{
				NodeClaim: claim, PriorityClassName: need.PriorityClassName, ResourceRequestBytes: requests,
			}
		}
		out = append(out, part)
	}
	return out, nil
}

func newNodeClaim(claim *workv1alpha2.NodeClaim) (*NodeClaim, error) {
	if claim == nil {
		return nil, nil
	}
	out := &NodeClaim{NodeSelector: claim.NodeSelector}
	if required := claim.HardNodeAffinity; required != nil {
		if len(required.NodeSelectorTerms) == 0 {
			// It matches no node, as one empty term does; without any its bytes would be none.
			required = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
		}
		affinity, err := required.Marshal()
		if err != nil {
			return nil, fmt.Errorf("node affinity: %w", err)
		}
		out.NodeAffinityBytes = affinity
	}
	for i := range claim.Tolerations {
		toleration, err := claim.Tolerations[i].Marshal()
		if err != nil {
			return nil, fmt.Errorf("toleration: %w", err)
		}
		out.TolerationsBytes = append(out.TolerationsBytes, toleration)
	}
	return out, nil
}

func newRequests(list corev1.ResourceList) (map[string][]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make(map[string][]byte, len(list))
	for name, quantity := range list {
		bytes, err := quantity.Marshal()
		if err != nil {
			return nil, fmt.Errorf("request of %s: %w", name, err)
		}
		out[string(name)] = bytes
	}
	return out, nil
}

// Need returns what the message says; nil where there is none. It errs on bytes that are not
// what they should be.
func (x *ReplicaRequirements) Need() (*workv1alpha2.ReplicaRequirements, error) {
	if x == nil {
		return nil, nil
	}
	claim, err := x.NodeClaim.claim()
	if err != nil {
		return nil, err
	}
	requests, err := requestsOf(x.ResourceRequestBytes)
	if err != nil {
		return nil, err
	}
	return &workv1alpha2.ReplicaRequirements{
		NodeClaim: claim, Namespace: x.Namespace, PriorityClassName: x.PriorityClassName, ResourceRequest: requests,
	}, nil
}

// ComponentsOf returns what the messages say. It errs on bytes that are not what they should be.
func ComponentsOf(parts []*Component) ([]workv1alpha2.Component, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	out := make([]workv1alpha2.Component, 0, len(parts))
	for _, part := range parts {
		c := workv1alpha2.Component{Name: part.GetName(), Replicas: part.GetReplicas()}
		if need := part.GetReplicaRequirements(); need != nil {
			claim, err := need.NodeClaim.claim()
			if err != nil {
				return nil, fmt.Errorf("component %q: %w", c.Name, err)
			}
			requests, err := requestsOf(need.ResourceRequestBytes)
			if err != nil {
				return nil, fmt.Errorf("component %q: %w", c.Name, err)
			}
			c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
				NodeClaim: claim, PriorityClassName: need.PriorityClassName, ResourceRequest: requests,
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func (x *NodeClaim) claim() (*workv1alpha2.NodeClaim, error) {
	if x == nil {
		return nil, nil
	}
	out := &workv1alpha2.NodeClaim{NodeSelector: x.NodeSelector}
	if len(x.NodeAffinityBytes) > 0 {
		out.HardNodeAffinity = &corev1.NodeSelector{}
		if err := out.HardNodeAffinity.Unmarshal(x.NodeAffinityBytes); err != nil {
			return nil, fmt.Errorf("node affinity: %w", err)
		}
	}
	for _, bytes := range x.TolerationsBytes {
		var toleration corev1.Toleration
		if err := toleration.Unmarshal(bytes); err != nil {
			return nil, fmt.Errorf("toleration: %w", err)
		}
		out.Tolerations = append(out.Tolerations, toleration)
	}
	return out, nil
}

func requestsOf(requests map[string][]byte) (corev1.ResourceList, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	out := make(corev1.ResourceList, len(requests))
	for name, bytes := range requests {
		quantity, err := quantityOf(bytes)
		if err != nil {
			return nil, fmt.Errorf("request of %q: %w", name, err)
		}
		out[corev1.ResourceName(name)] = quantity
	}
	return out, nil
}

// quantityOf reads a quantity after a look at its text: to reckon with an exponent of
// millions takes memory for each of its zeros.
func quantityOf(bytes []byte) (resource.Quantity, error) {
	if len(bytes) > maxQuantityBytes || longExponent(bytes) {
		return resource.Quantity{}, ErrQuantity
	}
	var out resource.Quantity
	if err := out.Unmarshal(bytes); err != nil {
		return resource.Quantity{}, err
	}
	return out, nil
}

// longExponent reports whether an e anywhere in the bytes has too many digits behind it.
func longExponent(bytes []byte) bool {
	digits, after := 0, false
	for _, b := range bytes {
		switch {
		case b == 'e' || b == 'E':
			digits, after = 0, true
		case after && ('0' <= b && b <= '9' || b == '+' || b == '-'):
			digits++
		default:
			after = false
		}
		if after && digits > maxExponent {
			return true
		}
	}
	return false
}
