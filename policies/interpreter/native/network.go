package native

import (
	"cmp"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

func service() kinds.Rules {
	return kinds.Rules{
		Retain:    retainService,
		Retains:   retainsService,
		Reflect:   reflectService,
		Health:    serviceHealthy,
		Aggregate: rules.Aggregate(serviceAddresses),
	}
}

func ingress() kinds.Rules {
	return kinds.Rules{
		Health:       hasAddress,
		Aggregate:    rules.Aggregate(ingressAddresses),
		Dependencies: ingressDependencies,
	}
}

func balances(obj kinds.Object) bool {
	return rules.Text(obj.Object, "spec", "type") == string(corev1.ServiceTypeLoadBalancer)
}

// reflectService reports the addresses of a load balancer. Services of other
// types have no status to report.
func reflectService(observed kinds.Object) (map[string]any, error) {
	if !balances(observed) {
		return nil, nil
	}
	return rules.Reflect("loadBalancer")(observed)
}

// serviceHealthy reports whether a load balancer has an address. Services of
// other types need none.
func serviceHealthy(obj kinds.Object) (bool, error) {
	if !balances(obj) {
		return true, nil
	}
	return hasAddress(obj)
}

func hasAddress(obj kinds.Object) (bool, error) {
	for _, entry := range rules.Objects(obj.Object, "status", "loadBalancer", "ingress") {
		if rules.Text(entry, "ip") != "" || rules.Text(entry, "hostname") != "" {
			return true, nil
		}
	}
	return false, nil
}

// serviceAddresses collects the addresses of a load balancer; the API server
// refuses addresses on services of other types.
func serviceAddresses(status map[string]any, r rules.Reports) {
	if balances(r.Template) {
		addresses(status, r, serviceAddress)
	}
}

func ingressAddresses(status map[string]any, r rules.Reports) { addresses(status, r, ingressAddress) }

func addresses(status map[string]any, r rules.Reports, valid func(map[string]any) map[string]any) {
	var all []any
	for _, p := range r.Parts {
		for _, entry := range rules.Objects(p.Status, "loadBalancer", "ingress") {
			if address := valid(entry); address != nil {
				all = append(all, address)
			}
		}
	}
	if len(all) > 0 || rules.Value(status, "loadBalancer", "ingress") != nil {
		status["loadBalancer"] = map[string]any{"ingress": rules.Distinct(all)}
	}
}

// ingressAddress returns an address without what the API server would refuse; nil
// where nothing is left.
func ingressAddress(entry map[string]any) map[string]any {
	out := map[string]any{}
	if ip, err := netip.ParseAddr(rules.Text(entry, "ip")); err == nil && ip.Zone() == "" && !ip.Is4In6() {
		out["ip"] = ip.String()
	}
	if host := rules.Text(entry, "hostname"); host != "" && len(validation.IsDNS1123Subdomain(host)) == 0 {
		if _, err := netip.ParseAddr(host); err != nil {
			out["hostname"] = host
		}
	}
	if len(out) == 0 {
		return nil
	}
	var ports []any
	for _, p := range rules.Objects(entry, "ports") {
		if port := portStatus(p); port != nil {
			ports = append(ports, port)
		}
	}
	if ports != nil {
		out["ports"] = ports
	}
	return out
}

func portStatus(p map[string]any) map[string]any {
	port, protocol := rules.Number(p, "port"), rules.Text(p, "protocol")
	if port < 1 || port > 65535 || protocol == "" {
		return nil
	}
	out := map[string]any{"port": port, "protocol": protocol}
	if fault := rules.Text(p, "error"); fault != "" {
		out["error"] = fault
	}
	return out
}

// serviceAddress is ingressAddress for services. It adds ipMode, which API
// servers since 1.30 set where there is an IP.
func serviceAddress(entry map[string]any) map[string]any {
	out := ingressAddress(entry)
	if out != nil && out["ip"] != nil {
		out["ipMode"] = string(corev1.LoadBalancerIPModeVIP)
		if rules.Text(entry, "ipMode") == string(corev1.LoadBalancerIPModeProxy) {
			out["ipMode"] = string(corev1.LoadBalancerIPModeProxy)
		}
	}
	return out
}

// Fields of a service that the member sets where the template does not.
var (
	clusterIP   = []string{"spec", "clusterIP"}
	clusterIPs  = []string{"spec", "clusterIPs"}
	healthCheck = []string{"spec", "healthCheckNodePort"}
)

func retainsService(desired kinds.Object) bool {
	for _, port := range rules.Objects(desired.Object, "spec", "ports") {
		if port["nodePort"] != nil {
			return true
		}
	}
	return rules.Has(clusterIP...)(desired) || rules.Has(clusterIPs...)(desired) || rules.Has(healthCheck...)(desired)
}

// retainService keeps the addresses and node ports that the member allocated.
func retainService(desired, observed kinds.Object) (kinds.Object, error) {
	out, err := rules.DropChanged(healthCheck...)(desired, observed)
	if err != nil {
		return nil, err
	}
	if want, have := rules.Text(desired.Object, clusterIP...), rules.Text(observed.Object, clusterIP...); have != "" && want != have {
		out = rules.Without(rules.Without(out, clusterIP...), clusterIPs...)
	}
	return retainNodePorts(out, observed), nil
}

// retainNodePorts leaves out node ports where the member has allocated others. A
// node port that Flotilla applied before is changed to the template's.
func retainNodePorts(desired, observed kinds.Object) kinds.Object {
	given := map[string]int64{}
	for _, port := range rules.Objects(observed.Object, "spec", "ports") {
		given[portKey(port)] = rules.Number(port, "nodePort")
	}
	out := desired.DeepCopy()
	for _, port := range rules.Objects(out.Object, "spec", "ports") {
		have := given[portKey(port)]
		if have != 0 && have != rules.Number(port, "nodePort") && !rules.Applied(observed, "f:spec", "f:ports", portKey(port), "f:nodePort") {
			delete(port, "nodePort")
		}
	}
	return out
}

// portKey returns the key by which managed fields name an entry of a service's
// ports.
func portKey(port map[string]any) string {
	protocol := cmp.Or(rules.Text(port, "protocol"), string(corev1.ProtocolTCP))
	return fmt.Sprintf(`k:{"port":%d,"protocol":%q}`, rules.Number(port, "port"), protocol)
}

func ingressDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	needs := rules.Needs{Namespace: obj.GetNamespace()}
	for _, entry := range rules.Objects(obj.Object, "spec", "tls") {
		needs.Add("Secret", rules.Text(entry, "secretName"))
	}
	return needs.Sorted(), nil
}

func serviceImportDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	service := "derived-" + obj.GetName()
	return []kinds.Dependency{
		{APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: service},
		{
			APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: obj.GetNamespace(),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/service-name": service}},
		},
	}, nil
}
