package taintpolicy

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// lostPolicy is the name of the policy that taints clusters that are lost.
const lostPolicy = "failover"

// again is how often the policy is tried to be made.
const again = 5 * time.Second

// lost is the policy by which what runs in lost clusters is moved. Users edit it as they like.
func lost() *policyv1alpha1.ClusterTaintPolicy {
	ready := func(operator policyv1alpha1.MatchConditionOperator) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{
			ConditionType: clusterv1alpha1.ClusterConditionReady, Operator: operator, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue},
		}}
	}
	return &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: lostPolicy},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions:    ready(policyv1alpha1.MatchConditionOpNotIn),
			RemoveOnConditions: ready(policyv1alpha1.MatchConditionOpIn),
			Taints:             []policyv1alpha1.Taint{{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute}},
		},
	}
}

// makeLost makes the policy where there is none of its name.
func makeLost(ctx context.Context, hub client.Client) error {
	err := wait.PollUntilContextCancel(ctx, again, true, func(ctx context.Context) (bool, error) {
		err := hub.Create(ctx, lost())
		if err != nil && !apierrors.IsAlreadyExists(err) {
			log.FromContext(ctx).Error(err, "make the ClusterTaintPolicy of lost clusters; it is tried again")
			return false, nil
		}
		return true, nil
	})
	if ctx.Err() != nil {
		return nil // the loops end
	}
	return err
}
