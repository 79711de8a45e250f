package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// Profile is what the nodes of a cluster have free. The zero value has no nodes.
type Profile struct {
	// Version is that of the format; see Version.
	Version int `json:"version"`
	// Resources are what the numbers of a row are about, in the units of estimate.Amount.
	Resources []corev1.ResourceName `json:"resources,omitempty"`
	Kinds     []Kind                `json:"kinds,omitempty"`
	// Omitted are the keys of labels that are left out; All: every label is.
	Omitted []string `json:"omitted,omitempty"`
	// LeftOut is how many nodes are left out, although they may have room.
	LeftOut int64 `json:"leftOut,omitempty"`
	// Quotas are reported one by one, with all the namespaces that have such a one.
	Quotas []Quota `json:"quotas,omitempty"`
	// QuotasOmitted says that namespaces which have none here may have quotas all the same.
	QuotasOmitted bool `json:"untold,omitempty"`
}

// Kind is all nodes with the same labels and taints.
type Kind struct {
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// Rows are how many nodes there are, and what each of them has free of each of the
	// Resources.
	Rows [][]int64 `json:"rows"`
}

// Quota is what a ResourceQuota leaves.
type Quota struct {
	Namespaces []string                      `json:"namespaces"`
	Free       map[corev1.ResourceName]int64 `json:"free"`
	Scopes     []Scope                       `json:"scopes,omitempty"`
}

// Scope means pods by their priority class.
type Scope struct {
	Operator corev1.ScopeSelectorOperator `json:"operator"`
	Values   []string                     `json:"values,omitempty"`
}

const (
	// Version is that of the format.
	Version = 1
	// All stands for the keys of all labels.
	All = "*"
)

// ErrUnreported says that a question depends on what the profile leaves out.
var ErrUnreported = errors.New("the cluster does not tell of its nodes what that depends on")

// UnreportedError is an ErrUnreported that names what is left out.
type UnreportedError struct {
	// What it is, such as "the label zone".
	What string
}

// Error implements error.
func (e *UnreportedError) Error() string { return ErrUnreported.Error() + ": " + e.What }

// Unwrap returns ErrUnreported.
func (e *UnreportedError) Unwrap() error { return ErrUnreported }

// Answers returns an UnreportedError where a question depends on what the profile leaves out.
func (p *Profile) Answers(ask *nodes.Ask) error {
	keys, named := ask.Chooses()
	if named {
		return &UnreportedError{"the names of its nodes"}
	}
	all := slices.Contains(p.Omitted, All)
	for _, key := range keys {
		if all || slices.Contains(p.Omitted, key) {
			return &UnreportedError{"the label " + key}
		}
	}
	complete := func(q Quota) bool { return slices.Contains(q.Namespaces, ask.Namespace) }
	if p.QuotasOmitted && ask.Namespace != "" && !slices.ContainsFunc(p.Quotas, complete) {
		return &UnreportedError{"the quotas of the namespace " + ask.Namespace}
	}
	return nil
}

// Index returns an index of as many nodes as are reported, with names of their own. Its plugins
// answer what Answers allows.
func (p *Profile) Index() *nodes.Index {
	x, at := &nodes.Index{}, 0
	for i := range p.Kinds {
		k := &p.Kinds[i]
		for _, row := range k.Rows {
			is := &nodes.Node{Labels: k.Labels, Taints: k.Taints, Allocatable: p.amounts(row)}
			for range row[0] {
				x.Node(fmt.Sprintf("%08d", at), is)
				at++
			}
		}
	}
	for i := range p.Quotas {
		is := p.Quotas[i].quota()
		for _, namespace := range p.Quotas[i].Namespaces {
			x.Quota(namespace, fmt.Sprint(i), is)
		}
	}
	return x
}

func (p *Profile) amounts(row []int64) nodes.Amounts {
	out := make(nodes.Amounts, len(p.Resources))
	for i, name := range p.Resources {
		out[i] = nodes.AmountOf{Name: name, N: row[i+1]}
	}
	return out
}

func (q *Quota) quota() *nodes.Quota {
	out := &nodes.Quota{}
	for name, n := range q.Free {
		out.Free = append(out.Free, nodes.AmountOf{Name: name, N: n})
	}
	slices.SortFunc(out.Free, func(a, b nodes.AmountOf) int { return strings.Compare(string(a.Name), string(b.Name)) })
	for _, s := range q.Scopes {
		out.Scopes = append(out.Scopes, nodes.Scope{Operator: s.Operator, Values: s.Values})
	}
	return out
}

// Nodes returns how many nodes are reported.
func (p *Profile) Nodes() int64 {
	var sum int64
	for i := range p.Kinds {
		for _, row := range p.Kinds[i].Rows {
			sum += min(row[0], math.MaxInt64-sum)
		}
	}
	return sum
}
