package resourcequota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	corelistersv1 "k8s.io/client-go/listers/core/v1"
)

// atOnce is how many namespaces are judged side by side.
const atOnce = 10

// Plugin refuses what would be one more than a quota of its namespace allows. Where
// there is no quota it costs nothing.
type Plugin struct {
	*resourcequota.QuotaAdmission
	quotas corelistersv1.ResourceQuotaLister
	synced func() bool
}

var _ admission.ValidationInterface = (*Plugin)(nil)

// New returns the plugin. The server gives it a client and its informers.
func New() *Plugin {
	upstream, err := resourcequota.NewResourceQuota(nil, atOnce)
	if err != nil {
		panic(err) // of a configuration, and there is none
	}
	return &Plugin{QuotaAdmission: upstream}
}

// SetExternalKubeInformerFactory is given the server's informers.
func (p *Plugin) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.QuotaAdmission.SetExternalKubeInformerFactory(factory{f})
	quotas := factory{f}.Core().V1().ResourceQuotas()
	p.quotas, p.synced = quotas.Lister(), quotas.Informer().HasSynced
}

// SetQuotaConfiguration has objects counted as on a hub, whatever the server counts.
func (p *Plugin) SetQuotaConfiguration(quota.Configuration) {
	p.QuotaAdmission.SetQuotaConfiguration(Counts(nil))
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == corev1.Resource("resourcequotas") && a.GetSubresource() == "" && a.GetObject() != nil {
		q := &corev1.ResourceQuota{}
		if err := o.GetObjectConvertor().Convert(a.GetObject(), q, nil); err != nil {
			return apierrors.NewInternalError(err)
		}
		for _, text := range uncounted(q) {
			warning.AddWarning(ctx, "", text)
		}
	}
	if p.synced() {
		quotas, err := p.quotas.ResourceQuotas(a.GetNamespace()).List(labels.Everything())
		if err == nil && len(quotas) == 0 {
			return nil
		}
	}
	return p.QuotaAdmission.Validate(ctx, a, o)
}
