package v1alpha1

// Labels.
const (
	// MultiClusterServicePermanentIDLabel holds the UUID of a MultiClusterService,
	// on itself and on what was made for it.
	MultiClusterServicePermanentIDLabel = "multiclusterservice.karmada.io/permanent-id"
	// MultiClusterServiceNamespaceLabel is the namespace of the service that a
	// Work was made for.
	MultiClusterServiceNamespaceLabel = "multiclusterservice.karmada.io/namespace"
	// MultiClusterServiceNameLabel is the name of the service that a Work was made
	// for.
	MultiClusterServiceNameLabel = "multiclusterservice.karmada.io/name"
	// EndpointSliceNamespaceLabel is the namespace of the service whose endpoints
	// a Work carries.
	EndpointSliceNamespaceLabel = "endpointslice.karmada.io/namespace"
	// EndpointSliceNameLabel is the name of the service whose endpoints a Work
	// carries.
	EndpointSliceNameLabel = "endpointslice.karmada.io/name"
	// EndpointSliceWorkManagedByLabel are the kinds that a Work with endpoints was
	// made for, joined by dots.
	EndpointSliceWorkManagedByLabel = "endpointslice.karmada.io/managed-by"
)

// Annotations.
const (
	// MultiClusterServiceNamespaceAnnotation is MultiClusterServiceNamespaceLabel,
	// on templates and bindings.
	MultiClusterServiceNamespaceAnnotation = "multiclusterservice.karmada.io/namespace"
	// MultiClusterServiceNameAnnotation is MultiClusterServiceNameLabel, on
	// templates and bindings.
	MultiClusterServiceNameAnnotation = "multiclusterservice.karmada.io/name"
	// EndpointSliceProvisionClusterAnnotation is the cluster that endpoints come
	// from.
	EndpointSliceProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"
)

// Finalizers.
const (
	// MCSControllerFinalizer holds a MultiClusterService until what was made for
	// it is gone.
	MCSControllerFinalizer = "karmada.io/multiclusterservice-controller"
	// EndpointSliceControllerFinalizer holds a Work with collected endpoints until
	// they are gone from the hub.
	EndpointSliceControllerFinalizer = "karmada.io/endpointslice-controller"
	// MCSEndpointSliceDispatchControllerFinalizer holds a Work with collected
	// endpoints until they are gone from the members.
	MCSEndpointSliceDispatchControllerFinalizer = "karmada.io/mcs-endpointslice-dispatch-controller"
)

// Condition types of a MultiClusterService, and their reasons.
const (
	// MCSServiceAppliedConditionType is True when the Service stands in its clusters.
	MCSServiceAppliedConditionType = "ServiceApplied"
	// MCSServiceAppliedSucceedReason goes with True.
	MCSServiceAppliedSucceedReason = "ServiceAppliedSucceed"
	// MCSServiceAppliedFailedReason goes with False.
	MCSServiceAppliedFailedReason = "ServiceAppliedFailed"
	// EndpointSliceDispatchedConditionType is True when the endpoints stand in the
	// consumers.
	EndpointSliceDispatchedConditionType = "EndpointSliceDispatched"
	// EndpointSliceDispatchedSucceedReason goes with True.
	EndpointSliceDispatchedSucceedReason = "EndpointSliceDispatchedSucceed"
	// EndpointSliceDispatchedFailedReason goes with False.
	EndpointSliceDispatchedFailedReason = "EndpointSliceDispatchedFailed"
)
