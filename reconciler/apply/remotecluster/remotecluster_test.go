package remotecluster_test

import (
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/apply/remotecluster"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func entry(kind schema.GroupKind, name string) inventory.Entry {
	return inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: name, GroupKind: kind}, Version: "v1"}
}

var (
	configs   = schema.GroupKind{Kind: "ConfigMap"}
	workloads = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	claims    = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// TestTheBrakeOutsideOfTheFleet: what a revision removes from a cluster outside of the fleet has to be allowed as here.
func TestTheBrakeOutsideOfTheFleet(t *testing.T) {
	many := []inventory.Entry{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		many = append(many, entry(configs, name))
	}
	web, worker, data := entry(workloads, "web"), entry(workloads, "worker"), entry(claims, "data")
	for name, tc := range map[string]struct {
		owned, deleted, desired []inventory.Entry
		allowed                 string
		refused                 bool
	}{
		"a few of many":                    {owned: many, deleted: many[:2], desired: many[2:]},
		"most of many":                     {owned: many, deleted: many[:7], desired: many[7:], refused: true},
		"most of many, which was allowed":  {owned: many, deleted: many[:7], desired: many[7:], allowed: "main@sha1:1"},
		"all of it":                        {owned: many[:1], deleted: many[:1], desired: many[1:2], refused: true},
		"one of two workloads":             {owned: []inventory.Entry{web, worker}, deleted: []inventory.Entry{web}, desired: []inventory.Entry{worker}},
		"the last workload":                {owned: append(many, web), deleted: []inventory.Entry{web}, desired: many, refused: true},
		"a claim":                          {owned: append(many, data), deleted: []inventory.Entry{data}, desired: many, refused: true},
		"a claim that is allowed by name":  {owned: append(many, data), deleted: []inventory.Entry{data}, desired: many, allowed: "persistentvolumeclaim/shop/data"},
		"nothing that would truly go away": {owned: many, desired: many[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			err := remotecluster.Removal{
				Owned: tc.owned, Deleted: tc.deleted, Desired: tc.desired, Revision: "main@sha1:1",
				May: inventory.AllowanceOf(tc.allowed, "", "main@sha1:1").Among(tc.owned),
			}.Check(inventory.DefaultBrake())
			if refusal := (*inventory.Refusal)(nil); errors.As(err, &refusal) != tc.refused || err != nil && !tc.refused {
				t.Errorf("error = %v, want refused = %v", err, tc.refused)
			}
		})
	}
}

// TestWhatStaysElsewhere: who leads a Kustomization to another cluster hears what stays in the one before.
func TestWhatStaysElsewhere(t *testing.T) {
	hub, east, west := inventory.Place{}, inventory.Place{Server: "https://east", Secret: "east"}, inventory.Place{Server: "https://west", Secret: "west"}
	owned := []inventory.Entry{entry(workloads, "web"), entry(configs, "a")}
	for name, tc := range map[string]struct {
		before, now inventory.Place
		owned       []inventory.Entry
		want        string
	}{
		"from the control plane": {
			now: east, owned: owned,
			want: "2 of its objects (ConfigMap/shop/a, Deployment/shop/web) stay on the control plane, and wherever policies carry them, as this Kustomization applies in the cluster of the Secret east from now on: delete them there, or let another Kustomization take them",
		},
		"to the control plane": {
			before: east, owned: owned[:1],
			want: "1 of its objects (Deployment/shop/web) stay in the cluster of the Secret east, as this Kustomization applies on the control plane from now on: delete them there, or let another Kustomization take them",
		},
		"to another cluster": {
			before: east, now: west, owned: owned,
			want: "2 of its objects (ConfigMap/shop/a, Deployment/shop/web) stay in the cluster of the Secret east, as this Kustomization applies in the cluster of the Secret west from now on: delete them there, or let another Kustomization take them",
		},
		"to the same cluster": {before: east, now: inventory.Place{Server: "https://east", Secret: "new"}, owned: owned},
		"here as ever":        {before: hub, now: hub, owned: owned},
		"of nothing":          {now: east},
	} {
		t.Run(name, func(t *testing.T) {
			status := kustomizev1.KustomizationStatus{History: meta.History{{Digest: "1"}}, Inventory: inventory.Record(tc.owned)}
			inventory.RecordPlace(&status, tc.before)
			if got := remotecluster.Left(status, tc.now); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}
