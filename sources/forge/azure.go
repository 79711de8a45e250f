package forge

import (
	"net/url"
	"slices"
	"strings"
)

// azurePlace is that of a repository on Azure DevOps, the service or a server of one's own.
func azurePlace(host *url.URL, parts []string) (place, bool) {
	n := len(parts)
	above, repository := parts[:n-2], parts[n-1]
	if parts[n-2] != "_git" || slices.Contains(above, "_git") {
		return place{}, false
	}
	server, roots, service := azureServer(host, above)
	if service && len(above) == roots {
		// The service leaves a project out that has the repository's name.
		above = append(slices.Clone(above), repository)
	}
	return place{
		before: server + "/" + escape(above) + "/_apis/git/repositories/" + url.PathEscape(repository) + "/commits/",
		after:  "/statuses?api-version=7.1",
	}, len(above) == roots+1
}

// azureServer returns where the API is, how many parts of a path are above the project, and
// whether that is the service: at dev.azure.com it is the organization; at the name that an
// organization had before, none or DefaultCollection; elsewhere a collection, which may be
// in an application.
func azureServer(host *url.URL, above []string) (server string, roots int, service bool) {
	name := strings.ToLower(host.Host)
	switch {
	case name == "dev.azure.com":
		return "https://" + name, 1, true
	case strings.HasSuffix(name, ".visualstudio.com") && len(above) > 0 && above[0] == "DefaultCollection":
		return "https://" + name, 1, true
	case strings.HasSuffix(name, ".visualstudio.com"):
		return "https://" + name, 0, true
	default:
		return host.String(), min(max(len(above)-1, 1), 2), false
	}
}

// azureAuth takes a personal access token, as a password for no user.
func azureAuth(secret map[string][]byte) (key, value string, err error) {
	token, err := tokenOf(secret)
	return "Authorization", basic("", token), err
}

// azureBody names the status as Flux does, so that it takes the place of one that Flux posted.
func azureBody(s Status) any {
	state := map[State]string{Pending: "pending", Success: "succeeded", Failure: "failed"}[s.State]
	return struct {
		State       string            `json:"state"`
		Description string            `json:"description,omitempty"`
		TargetURL   string            `json:"targetUrl,omitempty"`
		Context     map[string]string `json:"context"`
	}{state, s.Description, s.TargetURL, map[string]string{"genre": "fluxcd", "name": s.Context}}
}
