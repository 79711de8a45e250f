package controlplane

import (
	"net/http"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/openapi"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/aggregated"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/bootstrap"
	"github.com/flotilla-io/flotilla/controlplane/conversion"
)

// extension is what the server has beyond Kubernetes and custom resources.
func extension(clk clock.PassiveClock) *apiserver.Extension {
	group := aggregated.NewGroup(clk.Now)
	return &apiserver.Extension{
		Name:         "flotilla",
		Scheme:       group.Scheme,
		Codecs:       group.Codecs,
		StorageCodec: group.StorageCodec,
		Definitions:  openapi.GetOpenAPIDefinitions,
		Groups:       group.Groups,
		Priorities:   map[schema.GroupVersion]apiserver.Priority{clusterv1alpha1.GroupVersion: {Group: 2000, Version: 10}},
		Paths:        map[string]http.Handler{bootstrap.ConvertPath: conversion.NewHandler(workv1alpha1.Convert)},
	}
}

// plugins are the server's own admission.
func plugins() []apiserver.Plugin {
	return []apiserver.Plugin{
		{Name: "FlotillaKinds", Interface: admission.NewPlugin(uuid.NewString)},
		{Name: "FlotillaProtection", Interface: admission.NewProtection()},
	}
}
