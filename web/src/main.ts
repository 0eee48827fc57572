document.body.textContent = "opscope";
