package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// database is a StatefulSet whose claims go with it and its replicas, as it says, and its policy.
const database = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %[1]s, annotations: {%[2]s}}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  persistentVolumeClaimRetentionPolicy: {whenDeleted: %[3]s, whenScaled: %[3]s}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: db, namespace: %[1]s}
spec:
  drift: Report
  resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet, name: db}]
  placement:
    clusterAffinity: {clusterNames: [east]}
`

// TestDataOutlivesItsSet: the claims that a StatefulSet makes in a cluster stay there when it leaves or shrinks,
// whatever it says of them, unless somebody named its data.
func TestDataOutlivesItsSet(t *testing.T) {
	moves := func(t *testing.T, namespace string) {
		the.Kubectl(t, "", "patch", "pp", "db", "-n", namespace, "--type=merge", "-p", `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["west"]}}}}`)
	}
	for name, tc := range map[string]struct {
		annotations string
		retention   string
		takes       func(t *testing.T, namespace string)
		shrinks     bool // it is there still, with a replica less
		goes        bool // what it made is to go
	}{
		"it moves": {retention: "Delete", takes: moves},
		"it is deleted": {retention: "Delete", takes: func(t *testing.T, namespace string) {
			the.Kubectl(t, "", "delete", "statefulset", "db", "-n", namespace)
		}},
		"it shrinks": {retention: "Delete", shrinks: true, takes: func(t *testing.T, namespace string) {
			the.Kubectl(t, "", "scale", "statefulset", "db", "-n", namespace, "--replicas=1")
		}},
		"it says something else in the cluster": {retention: "Retain", takes: func(t *testing.T, namespace string) {
			set := &appsv1.StatefulSet{}
			set.Namespace, set.Name = namespace, "db"
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`))
			if err := the.members["east"].Patch(t.Context(), set, patch); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "it owns its claims", func(ctx context.Context) error {
				claims, err := claimsIn(ctx, namespace)
				for i := range claims {
					if len(claims[i].OwnerReferences) == 0 {
						return fmt.Errorf("%s has no owner", claims[i].Name)
					}
				}
				return err
			})
			moves(t, namespace)
		}},
		"its data is named": {annotations: `propagation.flotilla.io/allow-cascade: "true"`, retention: "Delete", goes: true, takes: moves},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := strings.ReplaceAll(fleet.NameOf(t), "testdataoutlivesitsset", "outlives")
			the.Apply(t, fmt.Sprintf(database, namespace, tc.annotations, tc.retention))
			eventually(t, 2*time.Minute, "the cluster has the claims", func(ctx context.Context) error {
				claims, err := claimsIn(ctx, namespace)
				if err == nil && len(claims) != 2 {
					err = fmt.Errorf("there are %d", len(claims))
				}
				return err
			})
			tc.takes(t, namespace)
			eventually(t, 2*time.Minute, "it is gone, or smaller", func(ctx context.Context) error {
				set := &appsv1.StatefulSet{}
				switch err := the.members["east"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "db"}, set); {
				case apierrors.IsNotFound(err) && !tc.shrinks:
					return nil
				case err == nil && tc.shrinks && set.Status.Replicas == 1 && set.Status.ObservedGeneration == set.Generation:
					return nil
				default:
					return fmt.Errorf("it has %d replicas: %w", set.Status.Replicas, err)
				}
			})
			allGone := func(ctx context.Context) error {
				pods := &corev1.PodList{}
				if err := the.members["east"].List(ctx, pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 1 || !tc.shrinks && len(pods.Items) > 0 {
					return fmt.Errorf("there are %d pods: %w", len(pods.Items), err)
				}
				claims, err := claimsIn(ctx, namespace)
				if err == nil && tc.goes && len(claims) > 0 {
					err = fmt.Errorf("there are %d claims", len(claims))
				}
				return err
			}
			eventually(t, 2*time.Minute, "what it made has gone, too", allGone)
			claims, err := claimsIn(t.Context(), namespace)
			if err != nil || len(claims) != 2 && !tc.goes {
				t.Fatalf("%d claims are left: %v", len(claims), err)
			}
			for i := range claims {
				if claims[i].DeletionTimestamp != nil || len(claims[i].OwnerReferences) > 0 {
					t.Errorf("%s is on its way: %v", claims[i].Name, claims[i].ObjectMeta)
				}
			}
		})
	}
}

// claimsIn are the claims of a namespace in east.
func claimsIn(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	err := the.members["east"].List(ctx, claims, client.InNamespace(namespace))
	return claims.Items, err
}
