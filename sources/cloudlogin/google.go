package cloudlogin

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/flotilla-io/flotilla/sources/cloudtoken"
)

// googleHosts are Artifact Registry, and the registry before it.
var googleHosts = regexp.MustCompile(`^(?:[a-z0-9-]+-docker\.pkg\.dev|(?:[a-z]+\.)?gcr\.io)$`)

// googleScope is what registries of Google want a token to be for; what it may read there is said by roles.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// googleUser is who logs in with a token.
const googleUser = "oauth2accesstoken"

// googleRegistry gets a token, which is the password.
func googleRegistry(ctx context.Context, a asker, q Question) (kept, error) {
	if !googleHosts.MatchString(q.Host) {
		return kept{}, fmt.Errorf("%w: %s is no LOCATION-docker.pkg.dev, which alone gets a login of Google", ErrHost, q.Host)
	}
	by, err := cloudtoken.ParseGoogle(q.Secret["serviceaccount"], googleScope)
	if err != nil {
		return kept{}, fmt.Errorf("serviceaccount: %w", err)
	}
	token, ends, err := cloudtoken.Ask(ctx, by, a.client, a.now)
	if errors.Is(err, ErrRefused) {
		return kept{}, fmt.Errorf("%w: put the key of a service account that is there into the Secret", err)
	}
	return kept{Login{Username: googleUser, Password: token}, ends}, err
}
