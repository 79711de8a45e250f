package resourcequota

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	coreinformersv1 "k8s.io/client-go/informers/core/v1"
	corelistersv1 "k8s.io/client-go/listers/core/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// carried reports whether a policy carries a quota to members.
func carried(quota *corev1.ResourceQuota) bool {
	return quota.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		quota.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != ""
}

// Informer is one that lists only the quotas that hold on the hub. Its events are
// those of all.
func Informer(all coreinformersv1.ResourceQuotaInformer) coreinformersv1.ResourceQuotaInformer {
	return informer{all}
}

type informer struct {
	coreinformersv1.ResourceQuotaInformer
}

func (i informer) Lister() corelistersv1.ResourceQuotaLister {
	return lister{i.ResourceQuotaInformer.Lister()}
}

type lister struct {
	corelistersv1.ResourceQuotaLister
}

func (l lister) List(selector labels.Selector) ([]*corev1.ResourceQuota, error) {
	return withoutCarried(l.ResourceQuotaLister.List(selector))
}

func (l lister) ResourceQuotas(namespace string) corelistersv1.ResourceQuotaNamespaceLister {
	return namespaceLister{l.ResourceQuotaLister.ResourceQuotas(namespace)}
}

type namespaceLister struct {
	corelistersv1.ResourceQuotaNamespaceLister
}

func (l namespaceLister) List(selector labels.Selector) ([]*corev1.ResourceQuota, error) {
	return withoutCarried(l.ResourceQuotaNamespaceLister.List(selector))
}

func (l namespaceLister) Get(name string) (*corev1.ResourceQuota, error) {
	quota, err := l.ResourceQuotaNamespaceLister.Get(name)
	if err == nil && carried(quota) {
		return nil, apierrors.NewNotFound(corev1.Resource("resourcequotas"), name)
	}
	return quota, err
}

func withoutCarried(quotas []*corev1.ResourceQuota, err error) ([]*corev1.ResourceQuota, error) {
	var out []*corev1.ResourceQuota
	for _, quota := range quotas {
		if !carried(quota) {
			out = append(out, quota)
		}
	}
	return out, err
}

// factory is a server's informers, with the quotas that hold on the hub.
type factory struct {
	informers.SharedInformerFactory
}

func (f factory) Core() core.Interface { return coreGroup{f.SharedInformerFactory.Core()} }

type coreGroup struct{ core.Interface }

func (g coreGroup) V1() coreinformersv1.Interface { return coreV1{g.Interface.V1()} }

type coreV1 struct{ coreinformersv1.Interface }

func (v coreV1) ResourceQuotas() coreinformersv1.ResourceQuotaInformer {
	return Informer(v.Interface.ResourceQuotas())
}
