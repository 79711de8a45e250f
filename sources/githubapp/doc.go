// Package githubapp gets tokens for what a GitHub App is installed on.
//
// In go the keys of a Secret in Flux's format and a way to GitHub's API; out comes a token, which counts for an hour and is
// kept that long. The private key signs here and goes nowhere. Redirects are not followed, answers are bounded, and no error
// repeats any of them, or of the Secret.
package githubapp
