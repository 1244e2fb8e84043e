/** Owns the start of the reference page: the document of this very service, and nothing from anywhere else. */
window.SwaggerUIBundle({
  url: new URL('openapi.json', window.location.href).href,
  dom_id: '#reference',
  deepLinking: true,
  tryItOutEnabled: true,
  // A key is for this page only: it is forgotten with it.
  persistAuthorization: false,
  validatorUrl: null,
})
