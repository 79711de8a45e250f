package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/clusters"
)

// gather joins the fake members and waits until all of them are at work.
func (b *bench) gather(ctx context.Context) error {
	if err := b.join(ctx); err != nil {
		return err
	}
	if err := assembled(ctx, b); err != nil {
		return err
	}
	_, err := b.fakes.Arrived("/" + namespace)
	return err
}

// assembled waits until the clusters of all fake members are ready.
func assembled(ctx context.Context, b *bench) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var clusters clusterv1alpha1.ClusterList
		if err := b.hub.List(ctx, &clusters); err != nil {
			return false, err
		}
		ready := 0
		for _, c := range clusters.Items {
			if meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
				ready++
			}
		}
		return ready == len(b.fakes.Members), nil
	})
	if err != nil {
		return fmt.Errorf("wait until all fake members are ready: %w", err)
	}
	return nil
}

// join registers the fake members as join does: each with a Secret that
// holds what it is reached with.
func (b *bench) join(ctx context.Context) error {
	const credentials = workv1alpha2.NamespaceKarmadaCluster
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentials}}
	if err := b.hub.Create(ctx, space); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace of the credentials: %w", err)
	}
	for i, m := range b.fakes.Members {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: credentials, Name: m.Name},
			Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(b.fakes.Token), clusterv1alpha1.SecretCADataKey: b.fakes.CA},
		}
		if err := b.hub.Create(ctx, secret); err != nil {
			return fmt.Errorf("make the credentials of %s: %w", m.Name, err)
		}
		cluster := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: m.Name},
			Spec: clusterv1alpha1.ClusterSpec{
				ID: m.ID, SyncMode: clusterv1alpha1.Push, APIEndpoint: m.Endpoint, Region: clusters.Regions[i%len(clusters.Regions)],
				SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: credentials, Name: m.Name},
			},
		}
		if err := b.hub.Create(ctx, cluster); err != nil {
			return fmt.Errorf("join %s: %w", m.Name, err)
		}
	}
	return nil
}
